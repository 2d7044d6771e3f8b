// The C interface of LLVM, as far as mote needs it: these functions are in every version from 15
// to 22, with the same types. No header of LLVM is needed to build.
#include "runtime/cpu/llvm_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

#if defined(__aarch64__)
constexpr const char* backend = "AArch64";
constexpr const char* system_folder = "/usr/lib/aarch64-linux-gnu";
#else
constexpr const char* backend = "X86";
constexpr const char* system_folder = "/usr/lib/x86_64-linux-gnu";
#endif

// LLVM's opaque types. Booleans are int, true for a failure; enumerations are int.
struct Context;
struct Module;
struct MemoryBuffer;
struct Machine;
struct LlvmTarget;
struct Layout;
struct Diagnostic;

enum { verify_returns = 2, position_independent = 2, default_code_model = 0, object_file = 1 };
enum { severity_error = 0 };

// What LLVM says of IR that its code generator cannot take. Thrown through LLVM's frames, since
// LLVM ends the process once its handler returns.
struct Fatal {
  std::string reason;
};
[[noreturn]] void throw_fatal(const char* reason) { throw Fatal{reason}; }

// 19 is the smallest of the newer ones with the fewest surprises; below 15 pointers have types.
std::vector<std::string> names_of_llvm() {
  std::vector<std::string> names;
  for (const int version : {19, 22, 20, 21, 18, 17, 16, 15}) {
    if (version >= 18) names.push_back(cat("libLLVM.so.", version, ".1"));
    names.push_back(cat("libLLVM-", version, ".so.1"));
    names.push_back(cat("libLLVM-", version, ".so"));
  }
  return names;
}

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  const char* path = std::getenv("LD_LIBRARY_PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    folders.push_back(rest.substr(0, colon));
    rest.erase(0, std::min(colon + 1, rest.size()));
  }
  for (const char* folder : {system_folder, "/usr/lib64", "/usr/local/lib", "/usr/lib"})
    folders.emplace_back(folder);
  return folders;
}

// NOTE: these instructions turn bfloat subnormals into zeros; without them LLVM calls a function.
std::string without_flushing(std::string features) {
  for (const char* name : {"+avx512bf16", "+avxneconvert"})
    if (const auto at = features.find(name); at != std::string::npos) features[at] = '-';
  return features;
}

bool exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// A function of the library; it becomes whatever pointer it initializes.
struct Symbol {
  void* at;
  template <class F>
  operator F*() const {
    return reinterpret_cast<F*>(at);
  }
};

class Library {
 public:
  // Never closed: LLVM leaves handlers behind that run when the process ends.
  explicit Library(const std::string& path)
      : path_(path), open_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!open_) throw DeviceError(cat("CPU: LLVM could not be loaded: ", dlerror()));
  }
  Symbol operator()(const std::string& name) const {
    if (void* at = dlsym(open_, name.c_str())) return {at};
    throw DeviceError(cat("CPU: ", path_, " has no '", name, "'; LLVM 15 to 22 is needed"));
  }

 private:
  std::string path_;
  void* open_;
};

}  // namespace

std::string find_llvm() {
  const std::string asked = flag("MOTE_LLVM");
  if (!asked.empty()) {
    if (exists(asked)) return asked;
    throw DeviceError(cat("CPU: MOTE_LLVM names '", asked, "', which is not there"));
  }
  for (const std::string& name : names_of_llvm())
    for (const std::string& folder : library_folders())
      if (exists(folder + "/" + name)) return folder + "/" + name;
  for (const std::string& name : names_of_llvm())  // in a folder that only the loader knows
    if (dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return name;
  throw DeviceError(
      "CPU: no libLLVM was found (versions 15 to 22 were tried); install one, such as the package "
      "libllvm19, or set MOTE_LLVM to its path, or use the device CLANG");
}

// clang-format off
struct LlvmLibrary::Functions {
  Library get;

  Context* (*context_create)()                         = get("LLVMContextCreate");
  void (*context_dispose)(Context*)                    = get("LLVMContextDispose");
  void (*on_diagnostic)(Context*, void (*)(Diagnostic*, void*), void*)
                                                       = get("LLVMContextSetDiagnosticHandler");
  char* (*diagnostic_text)(Diagnostic*)                = get("LLVMGetDiagInfoDescription");
  int (*diagnostic_severity)(Diagnostic*)              = get("LLVMGetDiagInfoSeverity");
  void (*on_fatal)(void (*)(const char*))              = get("LLVMInstallFatalErrorHandler");
  void (*message_dispose)(char*)                       = get("LLVMDisposeMessage");

  MemoryBuffer* (*buffer_copy)(const char*, std::size_t, const char*)
                                       = get("LLVMCreateMemoryBufferWithMemoryRangeCopy");
  const char* (*buffer_start)(MemoryBuffer*)           = get("LLVMGetBufferStart");
  std::size_t (*buffer_size)(MemoryBuffer*)            = get("LLVMGetBufferSize");
  void (*buffer_dispose)(MemoryBuffer*)                = get("LLVMDisposeMemoryBuffer");

  int (*parse)(Context*, MemoryBuffer*, Module**, char**) = get("LLVMParseIRInContext");
  int (*verify)(Module*, int, char**)                  = get("LLVMVerifyModule");
  void (*module_target)(Module*, const char*)          = get("LLVMSetTarget");
  void (*module_layout)(Module*, Layout*)              = get("LLVMSetModuleDataLayout");
  void (*module_dispose)(Module*)                      = get("LLVMDisposeModule");

  char* (*default_triple)()                            = get("LLVMGetDefaultTargetTriple");
  char* (*host_cpu)()                                  = get("LLVMGetHostCPUName");
  char* (*host_features)()                             = get("LLVMGetHostCPUFeatures");
  int (*target_of)(const char*, LlvmTarget**, char**)  = get("LLVMGetTargetFromTriple");
  Machine* (*machine_create)(LlvmTarget*, const char*, const char*, const char*, int, int, int)
                                                       = get("LLVMCreateTargetMachine");
  void (*machine_dispose)(Machine*)                    = get("LLVMDisposeTargetMachine");
  Layout* (*layout_create)(Machine*)                   = get("LLVMCreateTargetDataLayout");
  void (*layout_dispose)(Layout*)                      = get("LLVMDisposeTargetData");
  int (*emit)(Machine*, Module*, int, char**, MemoryBuffer**)
                                                = get("LLVMTargetMachineEmitToMemoryBuffer");

  explicit Functions(const std::string& path) : get(path) {
    // AsmParser serves inline assembly.
    for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"}) {
      void (*initialize)() = get(cat("LLVMInitialize", backend, part));
      initialize();
    }
  }
  // The text of a message that LLVM allocated.
  std::string take(char* message) const {
    std::string text = message ? message : "";
    if (message) message_dispose(message);
    return text;
  }
};
// clang-format on

// What one compile makes in LLVM, disposed in the order that LLVM asks for.
struct LlvmLibrary::Work {
  Work(const Functions& functions, const LlvmLibrary& library, int level)
      : llvm(functions), context(llvm.context_create()) {
    llvm.on_diagnostic(context, &collect, this);  // else LLVM prints, and exits at an error
    LlvmTarget* target = nullptr;
    char* message = nullptr;
    if (llvm.target_of(library.triple_.c_str(), &target, &message))
      throw DeviceError(cat("CPU: LLVM does not know this machine: ", llvm.take(message)));
    machine = llvm.machine_create(target, library.triple_.c_str(), library.cpu_.c_str(),
                                  library.features_.c_str(), level, position_independent,
                                  default_code_model);
    layout = llvm.layout_create(machine);
  }
  ~Work() {
    if (object) llvm.buffer_dispose(object);
    if (module) llvm.module_dispose(module);
    if (layout) llvm.layout_dispose(layout);
    if (machine) llvm.machine_dispose(machine);
    llvm.context_dispose(context);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  static void collect(Diagnostic* diagnostic, void* work) {
    Work& w = *static_cast<Work*>(work);
    if (w.llvm.diagnostic_severity(diagnostic) == severity_error)
      w.errors += w.llvm.take(w.llvm.diagnostic_text(diagnostic)) + "\n";
  }

  const Functions& llvm;
  Context* context;
  Module* module = nullptr;
  Machine* machine = nullptr;
  Layout* layout = nullptr;
  MemoryBuffer* object = nullptr;
  std::string errors;
};

LlvmLibrary::LlvmLibrary(const std::string& path) : llvm_(std::make_unique<Functions>(path)) {
  static const bool handled = (llvm_->on_fatal(&throw_fatal), true);  // one handler a process
  (void)handled;
  triple_ = llvm_->take(llvm_->default_triple());
  cpu_ = llvm_->take(llvm_->host_cpu());
  features_ = without_flushing(llvm_->take(llvm_->host_features()));
}

LlvmLibrary::~LlvmLibrary() = default;

std::string LlvmLibrary::compile(const Source& source, int level, bool verify) const {
  auto work = std::make_unique<Work>(*llvm_, *this, level);
  try {
    return object_of(source, *work, verify);
  } catch (const Fatal& fatal) {
    // LLVM's frames were left without clean-up, so its context still points into them: it stays.
    (void)work.release();
    throw CompileError(cat("CPU: LLVM cannot make code for the kernel '", source.name,
                           "': ", fatal.reason, "\nthe IR was:\n", source.text));
  }
}

std::string LlvmLibrary::object_of(const Source& source, Work& work, bool verify) const {
  char* message = nullptr;
  const auto refuse = [&](const char* doing) {
    const std::string said = work.errors + llvm_->take(message);
    throw CompileError(cat("CPU: LLVM refused the kernel '", source.name, "' ", doing, ":\n", said,
                           "\nthe IR was:\n", source.text));
  };
  const std::string& text = source.text;
  MemoryBuffer* ir = llvm_->buffer_copy(text.data(), text.size(), source.name.c_str());
  if (llvm_->parse(work.context, ir, &work.module, &message)) refuse("when reading it");
  if (verify && llvm_->verify(work.module, verify_returns, &message)) refuse("when verifying it");
  llvm_->message_dispose(message);  // the verifier allocates one also when all is well
  message = nullptr;
  llvm_->module_target(work.module, triple_.c_str());
  llvm_->module_layout(work.module, work.layout);
  const bool failed =
      llvm_->emit(work.machine, work.module, object_file, &message, &work.object) != 0;
  if (failed || !work.errors.empty()) refuse("when making code");
  return {llvm_->buffer_start(work.object), llvm_->buffer_size(work.object)};
}

}  // namespace mote
