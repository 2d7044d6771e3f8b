// Two connections: one reads on the caller's thread and never waits long, one writes on a thread
// of its own. Nothing is synced: a row that a crash loses costs a compile.
#include "runtime/disk_cache.h"

#include <pthread.h>
#include <sqlite3.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "base/flags.h"
#include "base/hash.h"

namespace mote {
namespace {

namespace fs = std::filesystem;
using Key = std::array<std::uint64_t, 2>;
using Value = std::vector<std::byte>;

constexpr std::uintmax_t largest_file = std::uintmax_t{1} << 30;  // past that it starts anew
constexpr int most_remakes = 3;  // a disk that damages every file is not fought
constexpr int read_wait_ms = 20, write_wait_ms = 2000;

struct Row {
  std::string table;
  Key key;
  Value value;
};

std::string cache_folder() {
  std::string folder = flag("MOTE_CACHE_DIR");
  if (!folder.empty()) return folder;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg && *xdg == '/') return std::string(xdg) + "/mote";
  return home && *home ? std::string(home) + "/.cache/mote" : "";
}

Key key_of(std::string_view table, std::string_view key) {
  return {hash_text(key, hash_text(table, 1)), hash_text(key, hash_text(table, 2))};
}

std::int64_t checksum(const Value& v, const Key& key) {
  const std::uint64_t seed = combine(key[0], key[1]);
  return static_cast<std::int64_t>(v.empty() ? seed : hash_bytes(v.data(), v.size(), seed));
}

// A connection, opened when it is first needed and again after the folder has changed or the file
// was made anew. Every method may fail, which is a miss.
class Database {
 public:
  enum Use { reads, writes };
  Database(Use use, std::atomic<int>& remakes) : use_(use), remakes_(remakes) {}
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::optional<Value> get(const std::string& table, const Key& key) {
    if (!open()) return {};
    std::optional<Value> value;
    const Statement s(*this, "select value, sum from rows where kind = ? and a = ? and b = ?");
    if (s.ready(table, key) && s.step() == SQLITE_ROW) value = s.checked(key);
    return value;
  }

  // All rows at once; those that a damaged file did not take go into the new one.
  void put(const std::deque<Row>& rows) {
    for (int tries = 0; tries < 2; ++tries)
      if (open() && insert(rows)) return;
  }

  void close() {
    if (db_) sqlite3_close_v2(db_);
    db_ = nullptr;
  }

 private:
  // One statement, ended with its scope. Notes when the file is damaged.
  class Statement {
   public:
    Statement(Database& owner, const char* text) : owner_(owner) {
      owner.note(sqlite3_prepare_v2(owner.db_, text, -1, &s_, nullptr));
    }
    ~Statement() {
      sqlite3_finalize(s_);
      owner_.remake_if_damaged();
    }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    bool ready(const std::string& table, const Key& key) const {
      if (!s_) return false;  // the table is not there yet
      sqlite3_bind_text(s_, 1, table.data(), static_cast<int>(table.size()), SQLITE_TRANSIENT);
      sqlite3_bind_int64(s_, 2, static_cast<sqlite3_int64>(key[0]));
      sqlite3_bind_int64(s_, 3, static_cast<sqlite3_int64>(key[1]));
      return true;
    }
    void bind_value(const Row& row) const {
      sqlite3_bind_blob64(s_, 4, row.value.data(), row.value.size(), SQLITE_STATIC);
      sqlite3_bind_int64(s_, 5, checksum(row.value, row.key));
    }
    int step() const { return owner_.note(sqlite3_step(s_)); }
    void reset() const { sqlite3_reset(s_); }
    std::optional<Value> checked(const Key& key) const {
      const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(s_, 0));
      Value value(data, data + sqlite3_column_bytes(s_, 0));
      if (sqlite3_column_int64(s_, 1) != checksum(value, key)) return {};
      return value;
    }

   private:
    Database& owner_;
    sqlite3_stmt* s_ = nullptr;
  };

  bool insert(const std::deque<Row>& rows) {
    if (!run("begin immediate")) return remake_if_damaged(), false;
    bool all = true;
    {
      const Statement s(
          *this, "insert or replace into rows (kind, a, b, value, sum) values (?, ?, ?, ?, ?)");
      for (const Row& row : rows) {
        if (!(all = all && s.ready(row.table, row.key))) break;
        s.bind_value(row);
        all = s.step() == SQLITE_DONE;
        s.reset();
      }
    }
    if (!db_) return false;  // it was damaged
    if (all && run("commit")) return true;
    run("rollback");
    remake_if_damaged();
    return false;
  }

  bool open() {
    const std::string folder = cache_folder();
    if (db_ && folder == folder_ && seen_ == remakes_) return true;
    close();
    folder_ = folder;
    seen_ = remakes_;
    if (folder.empty() || seen_ > most_remakes) return false;
    if (connect()) return true;
    close();
    remake_if_damaged();
    return false;
  }

  bool connect() {
    std::error_code no;  // whatever cannot be done here only costs the cache
    if (use_ == reads && !fs::exists(file(), no)) return false;
    if (use_ == writes) make_room();
    const int create = use_ == writes ? SQLITE_OPEN_CREATE : 0;
    const int how = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | create;
    if (sqlite3_open_v2(file().c_str(), &db_, how, nullptr) != SQLITE_OK) return false;
    sqlite3_busy_timeout(db_, use_ == reads ? read_wait_ms : write_wait_ms);
    if (use_ == reads) return true;
    return run("pragma journal_mode = wal") && run("pragma synchronous = off") &&
           run("create table if not exists rows"
               " (kind text, a integer, b integer, value blob, sum integer,"
               " primary key (kind, a, b))");
  }

  void make_room() const {
    std::error_code no;
    if (fs::create_directories(folder_, no))
      fs::permissions(folder_, fs::perms::owner_all, no);  // code is loaded from it
    const auto size = fs::file_size(file(), no);
    if (!no && size > largest_file) remove_files();
  }

  void remove_files() const {
    std::error_code no;
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(file() + part, no);
  }

  std::string file() const { return folder_ + "/cache-v2.sqlite"; }
  bool run(const char* text) {
    return note(sqlite3_exec(db_, text, nullptr, nullptr, nullptr)) == SQLITE_OK;
  }
  int note(int code) {
    damaged_ |= code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT;
    return code;
  }

  void remake_if_damaged() {
    if (!damaged_) return;
    damaged_ = false;
    close();
    if (++remakes_ <= most_remakes) remove_files();
  }

  const Use use_;
  std::atomic<int>& remakes_;  // of the file, by either connection
  int seen_ = 0;
  sqlite3* db_ = nullptr;
  std::string folder_;
  bool damaged_ = false;
};

class Cache {
 public:
  std::optional<Value> get(const std::string& table, const Key& key) {
    const std::lock_guard lock(reading_);
    return input_.get(table, key);
  }

  void put(Row row) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!writer_.joinable() && !start_writer()) return;
    queue_.push_back(std::move(row));
    wake_.notify_all();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return queue_.empty() && !writing_; });
  }

  // Writes what is left; nothing is kept from then on.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    {
      const std::lock_guard lock(reading_);
      input_.close();
    }
    if (writer_.joinable()) writer_.join();
  }

 private:
  bool start_writer() {
    try {
      writer_ = std::thread([this] { write(); });
      return true;
    } catch (const std::system_error&) {
      return false;  // no thread to be had: this row is not kept
    }
  }

  void write() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return output_.close();
      std::deque<Row> rows;
      rows.swap(queue_);
      writing_ = true;
      lock.unlock();
      output_.put(rows);
      lock.lock();
      writing_ = false;
      idle_.notify_all();
    }
  }

  std::atomic<int> remakes_{0};
  std::mutex reading_, mutex_;
  Database input_{Database::reads, remakes_};
  Database output_{Database::writes, remakes_};  // the writer's thread alone touches it
  std::condition_variable wake_, idle_;
  std::deque<Row> queue_;
  bool ended_ = false, writing_ = false;
  std::thread writer_;
};

std::atomic<bool> forked{false};  // here runs no writer, and SQLite's locks are the parent's

Cache& cache() {
  static Cache* const all = [] {
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    return new Cache;  // kernels may be compiled until the very end
  }();
  static const struct AtExit {
    ~AtExit() {
      if (!forked) all->end();
    }
  } at_exit;
  return *all;
}

bool is_off() { return forked || !flag_on("MOTE_CACHE"); }

}  // namespace

std::optional<std::vector<std::byte>> cache_get(std::string_view table, std::string_view key) {
  if (is_off()) return {};
  return cache().get(std::string(table), key_of(table, key));
}

void cache_put(std::string_view table, std::string_view key, std::span<const std::byte> value) {
  if (is_off()) return;
  cache().put({std::string(table), key_of(table, key), {value.begin(), value.end()}});
}

void cache_flush() {
  if (!is_off()) cache().flush();
}

}  // namespace mote
