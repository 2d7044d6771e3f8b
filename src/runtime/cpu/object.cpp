// Sections are laid out one after the other, their relocations applied, the code made executable:
//
//   padding | code and constants | jump stubs || writable sections
//   '------ read and execute ----------------'  '- read and write -'
//
// A call reaches 2 GiB. What lies further away, as libc does, is called by a stub, which holds the
// whole address. (System V ABI, AMD64 supplement, 4.4: relocation.)
#include "runtime/cpu/object.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/scalar.h"
#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t before_code = 64;  // sanitizers read the bytes before a function
constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t stub_bytes = 16;

[[noreturn]] void refuse(const std::string& what) {
  throw CompileError(cat("object file: ", what));
}

std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

// ---- functions that code may need and that not every libgcc has. A half travels in the low 16
// bits of a vector register, as the low bits of a float do.

float as_half(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits}); }
std::uint16_t half_bits(float x) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x));
}

void* own_function(std::string_view name) {
  struct Row {
    std::string_view name;
    void* at;
  };
  const auto address = [](auto* f) { return reinterpret_cast<void*>(f); };
  static const Row rows[] = {
      {"__truncsfbf2", address(+[](float x) { return as_half(to_bfloat(x)); })},
      {"__truncdfbf2", address(+[](double x) { return as_half(to_bfloat(x)); })},
      {"__truncsfhf2", address(+[](float x) { return as_half(to_half(x)); })},
      {"__truncdfhf2", address(+[](double x) { return as_half(to_half(x)); })},
      {"__extendhfsf2",
       address(+[](float x) { return static_cast<float>(from_half(half_bits(x))); })},
  };
  for (const Row& row : rows)
    if (row.name == name) return row.at;
  return nullptr;
}

// A checked view of the file's bytes.
class File {
 public:
  explicit File(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const std::byte* range(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) refuse("it ends too early");
    return bytes_.data() + offset;
  }
  template <class T>
  T at(std::uint64_t offset) const {
    T out;
    std::memcpy(&out, range(offset, sizeof(T)), sizeof(T));
    return out;
  }
  std::string_view text(std::uint64_t offset, std::uint64_t most) const {
    const char* begin = reinterpret_cast<const char*>(range(offset, most));
    const void* end = std::memchr(begin, 0, most);
    if (!end) refuse("a name has no end");
    return {begin, static_cast<const char*>(end)};
  }

 private:
  std::span<const std::byte> bytes_;
};

class Mapped final : public Object {
 public:
  explicit Mapped(std::uint64_t size) : size_(size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) refuse("there is no memory for it");
    memory = static_cast<std::byte*>(at);
  }
  ~Mapped() override { munmap(memory, size_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  void* symbol(std::string_view name) const override {
    const auto at = symbols.find(std::string(name));
    return at == symbols.end() ? nullptr : at->second;
  }

  std::byte* memory;
  std::unordered_map<std::string, void*> symbols;

 private:
  std::uint64_t size_;
};

class Loader {
 public:
  explicit Loader(std::span<const std::byte> bytes) : file_(bytes) {}

  std::shared_ptr<Object> load() {
    read_sections();
    lay_out();
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_SYMTAB) read_symbols(s);
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type == SHT_RELA) relocate(s);
    if (mprotect(out_->memory, writable_, PROT_READ | PROT_EXEC) != 0)
      refuse("its memory cannot be made executable");
    return out_;
  }

 private:
  void read_sections() {
    const auto head = file_.at<Elf64_Ehdr>(0);
    const bool elf = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0;
    if (!elf || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_REL)
      refuse("it is no relocatable 64-bit ELF file");
    if (head.e_machine != EM_X86_64) refuse("it is for another machine");
    if (head.e_shentsize != sizeof(Elf64_Shdr)) refuse("its section table is odd");
    const std::uint64_t table = std::uint64_t{head.e_shnum} * sizeof(Elf64_Shdr);
    file_.range(head.e_shoff, table);
    for (std::uint64_t at = 0; at < table; at += sizeof(Elf64_Shdr))
      sections_.push_back(file_.at<Elf64_Shdr>(head.e_shoff + at));
    for (const Elf64_Shdr& s : sections_)
      if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL) file_.range(s.sh_offset, s.sh_size);
  }

  void lay_out() {
    offsets_.assign(sections_.size(), 0);
    stubs_ = round_up(place(before_code, false), stub_bytes);
    end_of_stubs_ = stubs_;
    for (const Elf64_Shdr& s : sections_)  // at most one for each relocation
      if (s.sh_type == SHT_RELA) end_of_stubs_ += s.sh_size / sizeof(Elf64_Rela) * stub_bytes;
    writable_ = round_up(end_of_stubs_, page);
    const std::uint64_t size = round_up(place(writable_, true), page);
    if (size > most_bytes) refuse("it is too large");
    out_ = std::make_shared<Mapped>(size);
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (!offsets_[i] || s.sh_type == SHT_NOBITS || s.sh_size == 0) continue;
      std::memcpy(out_->memory + offsets_[i], file_.range(s.sh_offset, s.sh_size), s.sh_size);
    }
  }

  // Gives each loaded section of one kind its offset, from `at` on; returns their end.
  std::uint64_t place(std::uint64_t at, bool writable) {
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (!(s.sh_flags & SHF_ALLOC) || writable != ((s.sh_flags & SHF_WRITE) != 0)) continue;
      if (s.sh_size > most_bytes || s.sh_addralign > page) refuse("a section is too large");
      offsets_[i] = round_up(at, std::max<std::uint64_t>(s.sh_addralign, 16));
      at = offsets_[i] + s.sh_size;
      if (at > most_bytes) refuse("it is too large");
    }
    return at;
  }

  bool is_loaded(std::uint64_t section) const {
    return section < sections_.size() && offsets_[section] != 0;
  }

  void read_symbols(const Elf64_Shdr& table) {
    for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = file_.at<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !is_loaded(symbol.st_shndx)) continue;
      if (symbol.st_value >= sections_[symbol.st_shndx].sh_size)
        refuse("a function lies outside of its section");
      std::byte* at = out_->memory + offsets_[symbol.st_shndx] + symbol.st_value;
      out_->symbols[std::string(name_of(table, symbol))] = at;
    }
  }

  std::string_view name_of(const Elf64_Shdr& table, const Elf64_Sym& symbol) const {
    if (table.sh_link >= sections_.size()) refuse("a symbol table has no names");
    const Elf64_Shdr& names = sections_[table.sh_link];
    if (symbol.st_name >= names.sh_size) refuse("a name lies outside of its table");
    return file_.text(names.sh_offset + symbol.st_name, names.sh_size - symbol.st_name);
  }

  std::uint64_t address_of(const Elf64_Shdr& table, std::uint64_t number) const {
    if (number >= table.sh_size / sizeof(Elf64_Sym)) refuse("a relocation names no symbol");
    const auto symbol = file_.at<Elf64_Sym>(table.sh_offset + number * sizeof(Elf64_Sym));
    if (symbol.st_shndx != SHN_UNDEF) {
      if (!is_loaded(symbol.st_shndx)) refuse("a symbol lies in no loaded section");
      return address(out_->memory + offsets_[symbol.st_shndx]) + symbol.st_value;
    }
    const std::string name(name_of(table, symbol));
    if (void* own = own_function(name)) return address(own);
    if (void* at = dlsym(RTLD_DEFAULT, name.c_str())) return address(at);
    refuse(cat("it needs a function '", name, "' that this process does not have"));
  }

  // jmp *[rip+2]; two idle bytes; the address. The address alone is what a GOT entry holds.
  std::uint64_t stub(std::uint64_t target) {
    const auto [at, fresh] = stub_of_.try_emplace(target, stubs_);
    if (fresh) {
      if (stubs_ + stub_bytes > end_of_stubs_) refuse("it has more far symbols than relocations");
      const unsigned char jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc};
      std::memcpy(out_->memory + stubs_, jump, 8);
      std::memcpy(out_->memory + stubs_ + 8, &target, 8);
      stubs_ += stub_bytes;
    }
    return address(out_->memory + at->second);
  }
  std::uint64_t got_entry(std::uint64_t target) { return stub(target) + 8; }

  void relocate(const Elf64_Shdr& list) {
    if (!is_loaded(list.sh_info)) return;  // debug information
    if (list.sh_link >= sections_.size()) refuse("a relocation table has no symbols");
    const Elf64_Shdr& symbols = sections_[list.sh_link];
    if (symbols.sh_type != SHT_SYMTAB) refuse("a relocation table has no symbols");
    for (std::uint64_t i = 0; i < list.sh_size / sizeof(Elf64_Rela); ++i) {
      const auto r = file_.at<Elf64_Rela>(list.sh_offset + i * sizeof(Elf64_Rela));
      if (ELF64_R_TYPE(r.r_info) == R_X86_64_NONE) continue;
      const std::uint64_t size = sections_[list.sh_info].sh_size;
      const std::uint64_t width = is_wide(r) ? 8 : 4;
      if (r.r_offset > size || width > size - r.r_offset)
        refuse("a relocation lies outside of its section");
      apply(r, out_->memory + offsets_[list.sh_info] + r.r_offset,
            address_of(symbols, ELF64_R_SYM(r.r_info)));
    }
  }

  static bool is_wide(const Elf64_Rela& r) {
    const auto type = ELF64_R_TYPE(r.r_info);
    return type == R_X86_64_64 || type == R_X86_64_PC64;
  }

  void apply(const Elf64_Rela& r, std::byte* place, std::uint64_t target) {
    const auto addend = static_cast<std::uint64_t>(r.r_addend);
    const std::uint64_t here = address(place), distance = target + addend - here;
    const auto type = ELF64_R_TYPE(r.r_info);
    switch (type) {
      case R_X86_64_64: return write64(place, target + addend);
      case R_X86_64_PC64: return write64(place, distance);
      case R_X86_64_32: return write32(place, target + addend, target + addend <= UINT32_MAX);
      case R_X86_64_32S: return write32(place, target + addend, is_near(target + addend));
      case R_X86_64_PC32: return write32(place, distance, is_near(distance));
      case R_X86_64_PLT32: {
        const std::uint64_t near = is_near(distance) ? distance : stub(target) + addend - here;
        return write32(place, near, is_near(near));
      }
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX: {
        const std::uint64_t entry = got_entry(target) + addend - here;
        return write32(place, entry, is_near(entry));
      }
      default: refuse(cat("relocation type ", type, " is not known"));
    }
  }

  static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
  static bool is_near(std::uint64_t distance) {
    const auto d = static_cast<std::int64_t>(distance);
    return d == static_cast<std::int32_t>(d);
  }
  static void write64(std::byte* at, std::uint64_t v) { std::memcpy(at, &v, 8); }
  static void write32(std::byte* at, std::uint64_t v, bool fits) {
    if (!fits) refuse("a distance does not fit in 32 bits");
    const auto narrow = static_cast<std::uint32_t>(v);
    std::memcpy(at, &narrow, 4);
  }

  File file_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::uint64_t> offsets_;  // in memory; 0: not loaded
  std::uint64_t stubs_ = 0, end_of_stubs_ = 0, writable_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> stub_of_;
  std::shared_ptr<Mapped> out_;
};

}  // namespace

std::shared_ptr<Object> Object::load(std::span<const std::byte> bytes) {
  return Loader(bytes).load();
}

}  // namespace mote
