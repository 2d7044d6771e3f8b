#include "runtime/cpu/object.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

[[noreturn]] void damaged(const std::string& what) { throw CompileError(cat("object file: ", what)); }

// A checked view of the file's bytes.
class File {
 public:
  explicit File(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) damaged("it ends too early");
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return out;
  }
  const std::byte* range(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) damaged("a section lies outside of it");
    return bytes_.data() + offset;
  }
  std::string text(std::uint64_t offset, std::uint64_t end) const {
    std::string out;
    for (; offset < end; ++offset) {
      const char c = static_cast<char>(at<std::byte>(offset));
      if (c == 0) return out;
      out += c;
    }
    damaged("a name has no end");
  }

 private:
  std::span<const std::byte> bytes_;
};

constexpr std::uint64_t before_code = 64;       // padding in front of the first function
constexpr std::uint64_t most_bytes = 256 << 20;

class Mapped final : public Object {
 public:
  explicit Mapped(std::span<const std::byte> bytes) : file_(bytes) {
    read_sections();
    place();
    for (std::size_t i = 0; i < sections_.size(); ++i)
      if (sections_[i].sh_type == SHT_RELA) relocate(sections_[i]);
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0) damaged("its memory cannot be made executable");
  }
  ~Mapped() override {
    if (memory_) munmap(memory_, size_);
  }
  void* symbol(std::string_view name) const override {
    const auto at = symbols_.find(std::string(name));
    return at == symbols_.end() ? nullptr : at->second;
  }

 private:
  void read_sections() {
    const auto head = file_.at<Elf64_Ehdr>(0);
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_REL)
      damaged("it is no relocatable 64-bit ELF file");
    if (head.e_machine != EM_X86_64) damaged("it is for another machine");
    if (head.e_shentsize != sizeof(Elf64_Shdr)) damaged("its section table is odd");
    for (std::uint64_t i = 0; i < head.e_shnum; ++i) sections_.push_back(file_.at<Elf64_Shdr>(head.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  // Sections one after the other, then a jump stub for each far symbol.
  void place() {
    std::uint64_t at = before_code;
    offsets_.assign(sections_.size(), 0);
    std::uint64_t relocations = 0;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type == SHT_RELA) relocations += s.sh_size / sizeof(Elf64_Rela);
      if (!(s.sh_flags & SHF_ALLOC)) continue;
      if (s.sh_size > most_bytes || s.sh_addralign > 4096) damaged("a section is too large");
      const std::uint64_t align = std::max<std::uint64_t>(s.sh_addralign, 16);
      at = (at + align - 1) / align * align;
      offsets_[i] = at;
      at += s.sh_size;
      if (at > most_bytes) damaged("it is too large");
    }
    stubs_ = (at + 15) / 16 * 16;
    size_ = (stubs_ + relocations * 24 + 4095) / 4096 * 4096;
    if (size_ > most_bytes) damaged("it is too large");
    void* m = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) damaged("there is no memory for it");
    memory_ = static_cast<std::byte*>(m);
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (offsets_[i] && s.sh_type != SHT_NOBITS && s.sh_size) std::memcpy(memory_ + offsets_[i], file_.range(s.sh_offset, s.sh_size), s.sh_size);
    }
    for (const Elf64_Shdr& s : sections_) if (s.sh_type == SHT_SYMTAB) read_symbols(s);
  }

  void read_symbols(const Elf64_Shdr& table) {
    for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = file_.at<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if (type != STT_FUNC || symbol.st_shndx >= sections_.size() || !offsets_[symbol.st_shndx]) continue;
      if (symbol.st_value >= sections_[symbol.st_shndx].sh_size) damaged("a function lies outside of its section");
      symbols_[name_of_symbol(table, symbol)] = memory_ + offsets_[symbol.st_shndx] + symbol.st_value;
    }
  }

  std::string name_of_symbol(const Elf64_Shdr& table, const Elf64_Sym& symbol) const {
    if (table.sh_link >= sections_.size()) damaged("a symbol table has no names");
    const Elf64_Shdr& names = sections_[table.sh_link];
    if (symbol.st_name >= names.sh_size) damaged("a name lies outside of its table");
    return file_.text(names.sh_offset + symbol.st_name, names.sh_offset + names.sh_size);
  }

  std::uint64_t address_of(const Elf64_Shdr& table, std::uint64_t number) {
    if (number >= table.sh_size / sizeof(Elf64_Sym)) damaged("a relocation names no symbol");
    const auto symbol = file_.at<Elf64_Sym>(table.sh_offset + number * sizeof(Elf64_Sym));
    if (symbol.st_shndx != SHN_UNDEF) {
      if (symbol.st_shndx >= sections_.size() || !offsets_[symbol.st_shndx]) damaged("a symbol lies in no loaded section");
      return reinterpret_cast<std::uint64_t>(memory_) + offsets_[symbol.st_shndx] + symbol.st_value;
    }
    const std::string name = name_of_symbol(table, symbol);
    void* at = dlsym(RTLD_DEFAULT, name.c_str());
    if (!at) throw CompileError(cat("object file: it needs a function '", name, "' that this process does not have"));
    return reinterpret_cast<std::uint64_t>(at);
  }

  // jmp *[rip+0]; the address: for calls that a 32-bit distance does not reach. The address alone is
  // what a GOT entry holds.
  std::uint64_t stub(std::uint64_t target) {
    const auto [at, fresh] = stub_of_.try_emplace(target, stubs_);
    if (fresh) {
      const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
      std::memcpy(memory_ + stubs_, jump, 6);
      std::memcpy(memory_ + stubs_ + 6, &target, 8);
      stubs_ += 24;
    }
    return reinterpret_cast<std::uint64_t>(memory_) + at->second;
  }

  void relocate(const Elf64_Shdr& list) {
    if (list.sh_info >= sections_.size() || list.sh_link >= sections_.size()) damaged("a relocation table is odd");
    if (!offsets_[list.sh_info]) return;  // of a section that is not loaded
    const std::uint64_t size = sections_[list.sh_info].sh_size;
    for (std::uint64_t i = 0; i < list.sh_size / sizeof(Elf64_Rela); ++i) {
      const auto r = file_.at<Elf64_Rela>(list.sh_offset + i * sizeof(Elf64_Rela));
      const auto type = ELF64_R_TYPE(r.r_info);
      const std::uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      if (r.r_offset > size || width > size - r.r_offset) damaged("a relocation lies outside of its section");
      std::byte* place = memory_ + offsets_[list.sh_info] + r.r_offset;
      const auto here = reinterpret_cast<std::uint64_t>(place);
      const std::uint64_t target = address_of(sections_[list.sh_link], ELF64_R_SYM(r.r_info));
      const auto addend = static_cast<std::uint64_t>(r.r_addend);
      switch (type) {
        case R_X86_64_64: write64(place, target + addend); break;
        case R_X86_64_PC64: write64(place, target + addend - here); break;
        case R_X86_64_PC32: case R_X86_64_PLT32: {
          const auto near = static_cast<std::int64_t>(target + addend - here);
          write32(place, near == static_cast<std::int32_t>(near) ? near : static_cast<std::int64_t>(stub(target) + addend - here));
          break;
        }
        case R_X86_64_GOTPCREL: case R_X86_64_GOTPCRELX: case R_X86_64_REX_GOTPCRELX:
          write32(place, static_cast<std::int64_t>(stub(target) + 6 + addend - here));
          break;
        default: damaged(cat("relocation type ", type, " is not known"));
      }
    }
  }

  static void write64(std::byte* at, std::uint64_t v) { std::memcpy(at, &v, 8); }
  static void write32(std::byte* at, std::int64_t v) {
    if (v != static_cast<std::int32_t>(v)) damaged("a distance does not fit in 32 bits");
    const auto narrow = static_cast<std::int32_t>(v);
    std::memcpy(at, &narrow, 4);
  }

  File file_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::uint64_t> offsets_;   // in memory_; 0: not loaded
  std::byte* memory_ = nullptr;
  std::uint64_t size_ = 0, stubs_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> stub_of_;
  std::unordered_map<std::string, void*> symbols_;
};

}  // namespace

std::shared_ptr<Object> Object::load(std::span<const std::byte> bytes) { return std::make_shared<Mapped>(bytes); }

}  // namespace mote
