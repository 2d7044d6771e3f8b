// The command `mote`.
#include <mote/mote.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/flags.h"
#include "base/text.h"
#include "mote/bench.h"
#include "mote/digits.h"
#include "mote/report.h"

namespace {

using namespace mote;

int show_devices() {
  for (const DeviceStatus& d : devices())
    std::printf("%-6s %-9s %s%s\n", d.name.c_str(), d.ready ? "ready" : "missing",
                d.description.c_str(), d.ready ? "" : ("; " + d.reason).c_str());
  return 0;
}

int show_flags() {
  for (const Flag& f : all_flags()) {
    const std::string value = flag(f.name);
    std::printf("%-17s %-10s %s\n", std::string(f.name).c_str(),
                value.empty() ? "(not set)" : value.c_str(), std::string(f.help).c_str());
  }
  return 0;
}

struct TrainOptions {
  std::string data_set, device, folder, out = ".";
  digits::Settings settings;
  std::int64_t train = 0;
  int threads = 0;
};

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush())
    throw FileError(cat("cannot write ", path.string(), "; choose another folder with --out"));
}

int train_digits(const TrainOptions& o) {
  using clock = std::chrono::steady_clock;
  if (!o.device.empty()) set_default_device(o.device);
  if (default_device_name().starts_with("NULL"))
    throw DeviceError("the device NULL runs nothing, so nothing is learnt; choose CPU or CLANG");
  if (o.threads > 0) set_threads(o.threads);
  if (!std::filesystem::is_directory(o.out))
    throw FileError(cat("--out ", o.out, " is no folder; make it first"));
  auto [set, test] = data::mnist(o.folder, Where{});
  if (set.width() != 28 || set.height() != 28)
    throw ValueError(cat("the pictures are ", set.width(), " x ", set.height(),
                         ", the network reads 28 x 28; give another folder with --data"));
  if (o.train > 0) set = set.first(std::min(o.train, set.size()));
  if (o.settings.batch > set.size())
    throw ValueError(cat("--batch ", o.settings.batch, " is more than the ", set.size(),
                         " pictures; give a smaller one"));
  manual_seed(o.settings.seed);
  digits::Net net;
  digits::Report report;
  report.settings = o.settings;
  report.device = default_device_name();
  report.threads = threads();
  report.pictures = set.size();
  std::printf("%lld pictures, %d epochs of batches of %lld, on %s with %d threads\n",
              static_cast<long long>(set.size()), o.settings.epochs,
              static_cast<long long>(o.settings.batch), report.device.c_str(), report.threads);
  std::fflush(stdout);
  const auto begun = clock::now();
  {
    ProgressBar bar(digits::batches(set, o.settings).count(), o.settings.batch, "images");
    digits::train(net, set, o.settings, [&](const digits::Progress& p) {
      report.losses.push_back(p.loss);
      char note[64];
      std::snprintf(note, sizeof note, "epoch %d  loss %.4f", p.epoch + 1,
                    static_cast<double>(p.loss));
      bar.advance(note);
    });
  }
  report.seconds = std::chrono::duration<double>(clock::now() - begun).count();
  report.seen = digits::predictions(net, test);
  report.accuracy = digits::accuracy(report.seen, test);
  const std::filesystem::path out(o.out);
  save(net.state_dict(), (out / "mnist.safetensors").string(), Where{});
  write_file(out / "mnist.html", digits::html(report, test));
  std::printf("%s%s\nwrote %s and %s\n", digits::wrong_pictures(report, test, 3).c_str(),
              digits::confusion(report, test).c_str(), (out / "mnist.safetensors").c_str(),
              (out / "mnist.html").c_str());
  std::printf("trained in %.1f s\ntest accuracy %.2f %%\n", report.seconds, report.accuracy * 100);
  return 0;
}

int train(const TrainOptions& o) {
  const std::vector<std::string> known{"mnist"};
  if (o.data_set == known[0]) return train_digits(o);
  throw ValueError(cat("there is no data set '", o.data_set, "'; known: ", join(known)));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"mote: a deep-learning framework in C++"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "mote " MOTE_VERSION);
  auto* devices_command =
      app.add_subcommand("devices", "the devices, and what is missing for each");
  auto* env_command = app.add_subcommand("env", "the environment variables that mote reads");
  auto* version_command = app.add_subcommand("version", "the version");
  auto* help_command = app.add_subcommand("help", "this page");
  auto* bench_command = app.add_subcommand("bench", "measure one case");
  std::string bench_case;
  bench::Options bench_options;
  bench_command->add_option("case", bench_case, cat("one of ", join(bench::cases())))->required();
  bench_command->add_option("--device", bench_options.device, "CPU, CLANG, ..");
  bench_command->add_option("--threads", bench_options.threads, "1 by default")
      ->check(CLI::Range(1, 1024));
  bench_command->add_option("--n", bench_options.n, "size of matmul")
      ->check(CLI::Range(1, 1 << 15))
      ->capture_default_str();
  bench_command->add_option("--seconds", bench_options.seconds, "for the measured iterations")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  bench_command->add_flag("--json", bench_options.json, "one line of JSON");
  auto* train_command = app.add_subcommand("train", "train a network on a data set");
  TrainOptions o;
  train_command->add_option("data", o.data_set, "mnist: the digits")->required();
  train_command->add_option("--device", o.device, "CPU, CLANG, ..; see `mote devices`");
  train_command->add_option("--epochs", o.settings.epochs, "times through the data")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  train_command->add_option("--batch", o.settings.batch, "pictures of a step")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  train_command->add_option("--lr", o.settings.lr, "learning rate of Adam")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  train_command->add_option("--seed", o.settings.seed, "of weights and order")
      ->capture_default_str();
  train_command->add_option("--train", o.train, "only the first pictures")
      ->check(CLI::PositiveNumber);
  train_command->add_option("--threads", o.threads, "never changes a result")
      ->check(CLI::Range(1, 1024));
  train_command->add_option("--data", o.folder, "the folder of the IDX files");
  train_command->add_option("--out", o.out, "where mnist.html and mnist.safetensors go")
      ->capture_default_str();
  const std::string page = app.help();  // after parsing it would be the subcommand's
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;  // prints help, or what was wrong
  }
  try {
    if (*devices_command) return show_devices();
    if (*env_command) return show_flags();
    if (*version_command) return std::printf("mote %s\n", MOTE_VERSION) < 0;
    if (*help_command) return std::printf("%s", page.c_str()) < 0;
    if (*bench_command)
      return std::printf("%s\n", bench::run(bench_case, bench_options).c_str()) < 0;
    return train(o);
  } catch (const Error& e) {
    std::fprintf(stderr, "mote: %s\n", e.what());
    return 1;
  }
}
