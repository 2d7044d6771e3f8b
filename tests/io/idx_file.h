// IDX files, made here: magic, sizes, bytes; and gzip.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "io/folder.h"

namespace mote::testing {

inline Bytes idx_header(const std::vector<std::uint32_t>& sizes) {
  Bytes out{0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (std::uint32_t n : sizes)
    for (int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::uint8_t>(n >> shift));
  return out;
}

inline Bytes idx(const std::vector<std::uint32_t>& sizes, const Bytes& bytes) {
  Bytes out = idx_header(sizes);
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

inline Bytes gzip(const Bytes& plain) {
  z_stream z{};
  if (deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib failed");
  Bytes out(deflateBound(&z, static_cast<uLong>(plain.size())));
  z.next_in = const_cast<Bytef*>(plain.data());
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib failed");
  return out;
}

inline Bytes counted(std::size_t n, std::size_t factor = 1) {
  Bytes out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(i * factor);
  return out;
}

}  // namespace mote::testing
