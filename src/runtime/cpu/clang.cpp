// CLANG: C text through a compiler found at run time, its object code taken by the loader.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"
#include "runtime/cpu/host.h"

extern char** environ;

namespace mote {
namespace {

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = rest.substr(0, colon) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.erase(0, std::min(colon + 1, rest.size()));
  }
  return "";
}

std::string find_compiler() {
  const std::string asked = flag("MOTE_CC");
  const std::vector<std::string> names =
      asked.empty() ? std::vector<std::string>{"clang-19", "clang", "gcc", "cc"}
                    : std::vector<std::string>{asked};
  for (const std::string& name : names)
    if (std::string found = find_program(name); !found.empty()) return found;
  throw DeviceError(cat("CLANG: no C compiler was found (tried ", join(names),
                        "); install clang or gcc, or set MOTE_CC"));
}

// An open file without a name.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, 0)) {
    if (fd_ < 0) throw CompileError(cat("CLANG: no file in memory: ", std::strerror(errno)));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  int fd() const { return fd_; }
  void write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = write(fd_, text.data(), text.size());
      if (n <= 0) throw CompileError(cat("CLANG: writing the source: ", std::strerror(errno)));
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    lseek(fd_, 0, SEEK_SET);
  }
  std::string read_all() const {
    std::string out;
    char part[65536];
    lseek(fd_, 0, SEEK_SET);
    for (ssize_t n; (n = read(fd_, part, sizeof part)) > 0;)
      out.append(part, static_cast<std::size_t>(n));
    return out;
  }

 private:
  int fd_;
};

class ClangDevice final : public HostDevice {
 public:
  ClangDevice() : HostDevice("CLANG", host_target("C")), compiler_(find_compiler()) {
    identity_ = file_identity(compiler_);
  }

  std::shared_ptr<Program> compile(const Source& source) override {
    const auto flags = arguments(source);
    const std::string key = cat(compiler(), "\n", join(flags, " "), "\n", source.text);
    return cached_program(*this, source, key, [&] { return run_compiler(source, flags); });
  }

  std::string compiler() const override { return cat(identity_, "\n", host_features()); }

 private:
  std::vector<std::string> arguments(const Source& source) const {
    std::vector<std::string> out{compiler_,
                                 "-xc",
                                 "-",
                                 "-c",
                                 "-o",
                                 "/proc/self/fd/3",
                                 source.fast_compile ? "-O1" : "-O2",
                                 "-march=native",
                                 "-fPIC",
                                 "-std=gnu11",
                                 "-fno-math-errno",
                                 "-ffp-contract=on",
                                 "-fwrapv",
                                 "-fno-strict-aliasing",
                                 "-fno-asynchronous-unwind-tables",
                                 "-fno-stack-protector",
                                 "-fno-ident",
                                 "-w"};
    const bool is_clang = compiler_.find("clang") != std::string::npos;  // gcc lacks the options
    if (!address_sanitized || !is_clang) return out;
    // The sanitizer runs in this process; the loader runs no constructor that registers globals.
    for (const char* more : {"-fsanitize=address", "-mllvm", "-asan-globals=0"})
      out.emplace_back(more);
    return out;
  }

  std::string run_compiler(const Source& source, const std::vector<std::string>& flags) const {
    const MemoryFile input("mote-source"), output("mote-object"), log("mote-log");
    input.write_all(source.text);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.fd(), 0);
    posix_spawn_file_actions_adddup2(&actions, log.fd(), 1);
    posix_spawn_file_actions_adddup2(&actions, log.fd(), 2);
    const int object_fd = fcntl(output.fd(), F_DUPFD, 10);
    posix_spawn_file_actions_adddup2(&actions, object_fd, 3);
    std::vector<char*> argv;
    for (const std::string& f : flags) argv.push_back(const_cast<char*>(f.c_str()));
    argv.push_back(nullptr);
    pid_t child = 0;
    const int error =
        posix_spawn(&child, compiler_.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(object_fd);
    if (error)
      throw CompileError(
          cat("CLANG: ", compiler_, " could not be started: ", std::strerror(error)));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    const std::string object = output.read_all();
    if (status != 0 || object.empty()) {
      throw CompileError(cat("CLANG: ", compiler_, " refused the kernel '", source.name, "':\n",
                             log.read_all(), "\nthe source was:\n", source.text));
    }
    return object;
  }

  std::string compiler_, identity_;
};

}  // namespace

std::unique_ptr<Device> make_clang_device(std::string_view arguments) {
  if (!arguments.empty())
    throw DeviceError(cat("CLANG: '", std::string(arguments), "' is not known; write CLANG alone"));
  return std::make_unique<ClangDevice>();
}

}  // namespace mote
