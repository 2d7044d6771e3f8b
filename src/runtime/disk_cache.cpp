#include "runtime/disk_cache.h"

#include <sqlite3.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/flags.h"
#include "base/hash.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

std::string cache_folder() {
  std::string folder = flag("MOTE_CACHE_DIR");
  if (!folder.empty()) return folder;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg && *xdg) return std::string(xdg) + "/mote";
  return home && *home ? std::string(home) + "/.cache/mote" : "";
}

struct Row {
  std::string table;
  std::uint64_t key[2];
  std::vector<std::byte> value;
};

std::uint64_t checksum(std::span<const std::byte> v, const std::uint64_t key[2]) {
  return hash_bytes(v.data(), v.size(), key[0] ^ key[1]);
}

// One connection. Whatever fails reads as a miss; a file that is no database is made anew.
class Database {
 public:
  ~Database() { close(); }

  std::optional<std::vector<std::byte>> get(std::string_view table, const std::uint64_t key[2]) {
    if (!open()) return {};
    sqlite3_stmt* s = nullptr;
    std::optional<std::vector<std::byte>> out;
    if (prepare("select value, sum from rows where kind = ? and a = ? and b = ?", s)) {
      bind_key(s, table, key);
      const int code = sqlite3_step(s);
      if (code == SQLITE_ROW) out = checked(s, key);
      else damaged(code);
    }
    sqlite3_finalize(s);
    remake_if_damaged();
    return out;
  }

  void put(const Row& row) {
    if (!open()) return;
    sqlite3_stmt* s = nullptr;
    if (prepare("insert or replace into rows (kind, a, b, value, sum) values (?, ?, ?, ?, ?)", s)) {
      bind_key(s, row.table, row.key);
      sqlite3_bind_blob64(s, 4, row.value.data(), row.value.size(), SQLITE_STATIC);
      sqlite3_bind_int64(s, 5, static_cast<sqlite3_int64>(checksum(row.value, row.key)));
      damaged(sqlite3_step(s));
    }
    sqlite3_finalize(s);
    remake_if_damaged();
  }

 private:
  bool open() {
    const std::string folder = cache_folder();
    if (db_ && folder == folder_) return true;
    if (folder == folder_ && failed_) return false;
    close();
    folder_ = folder;
    failed_ = folder.empty() || !connect();
    return !failed_;
  }

  bool connect() {
    std::error_code ignored;  // a folder that cannot be made only costs the cache
    fs::create_directories(folder_, ignored);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(file().c_str(), &db_, flags, nullptr) != SQLITE_OK) return close(), false;
    sqlite3_busy_timeout(db_, 2000);
    const char* setup =
        "pragma journal_mode = wal; pragma synchronous = off;"
        "create table if not exists rows (kind text, a integer, b integer, value blob, sum integer,"
        " primary key (kind, a, b)) without rowid";
    const int code = sqlite3_exec(db_, setup, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return true;
    damaged(code);
    const bool again = damaged_ && !remade_;
    remake_if_damaged();
    return again && db_;
  }

  std::string file() const { return folder_ + "/cache-v1.sqlite"; }

  bool prepare(const char* text, sqlite3_stmt*& s) {
    const int code = sqlite3_prepare_v2(db_, text, -1, &s, nullptr);
    damaged(code);
    return code == SQLITE_OK;
  }

  static void bind_key(sqlite3_stmt* s, std::string_view table, const std::uint64_t key[2]) {
    sqlite3_bind_text(s, 1, table.data(), static_cast<int>(table.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 2, static_cast<sqlite3_int64>(key[0]));
    sqlite3_bind_int64(s, 3, static_cast<sqlite3_int64>(key[1]));
  }

  static std::optional<std::vector<std::byte>> checked(sqlite3_stmt* s, const std::uint64_t key[2]) {
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(s, 0));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(s, 0));
    std::vector<std::byte> value(data, data + size);
    if (static_cast<std::uint64_t>(sqlite3_column_int64(s, 1)) != checksum(value, key)) return {};
    return value;
  }

  void damaged(int code) { damaged_ |= code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT; }

  void remake_if_damaged() {
    if (!damaged_ || remade_) return;
    damaged_ = false;
    remade_ = true;  // once a process: a disk that damages every file is not fought
    close();
    std::error_code ignored;
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(file() + part, ignored);
    failed_ = !connect();
  }

  void close() {
    if (db_) sqlite3_close_v2(db_);
    db_ = nullptr;
    failed_ = false;
  }

  sqlite3* db_ = nullptr;
  std::string folder_ = "\n";
  bool failed_ = false, damaged_ = false, remade_ = false;
};

// Writes go through a thread of their own, so no result waits for them.
class Cache {
 public:
  ~Cache() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (writer_.joinable()) writer_.join();
  }

  std::optional<std::vector<std::byte>> get(std::string_view table, const std::uint64_t key[2]) {
    const std::lock_guard lock(reading_);
    return reader_.get(table, key);
  }

  void put(Row row) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(row));
    if (!writer_.joinable()) writer_ = std::thread([this] { write(); });
    wake_.notify_all();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return queue_.empty() && !writing_; });
  }

 private:
  void write() {
    Database db;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Row row = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      lock.unlock();
      db.put(row);
      lock.lock();
      writing_ = false;
      if (queue_.empty()) idle_.notify_all();
    }
  }

  std::mutex reading_, mutex_;
  Database reader_;
  std::condition_variable wake_, idle_;
  std::deque<Row> queue_;
  bool stop_ = false, writing_ = false;
  std::thread writer_;
};

Cache& cache() {
  static Cache all;  // ends with the process, after what was put is written
  return all;
}

void hash_key(std::string_view key, std::uint64_t out[2]) {
  out[0] = hash_text(key, 1);
  out[1] = hash_text(key, 2);
}

}  // namespace

std::optional<std::vector<std::byte>> cache_get(std::string_view table, std::string_view key) {
  if (flag("MOTE_CACHE") == "0") return {};
  std::uint64_t hash[2];
  hash_key(key, hash);
  return cache().get(table, hash);
}

void cache_put(std::string_view table, std::string_view key, std::span<const std::byte> value) {
  if (flag("MOTE_CACHE") == "0") return;
  Row row{std::string(table), {}, {value.begin(), value.end()}};
  hash_key(key, row.key);
  cache().put(std::move(row));
}

void cache_flush() { cache().flush(); }

}  // namespace mote
