#include "tools/gen/output.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/emitter.h"
#include "zeze/base/result.h"

namespace zeze::gen {
namespace {

namespace fs = std::filesystem;

Error Failed(std::string_view what, const std::string& path, const std::string& why) {
  return Error(ErrorCode::kUnavailable, fmt::format("cannot {} '{}': {}", what, path, why));
}

bool IsOurs(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string start(GeneratedMark().size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return in.gcount() == static_cast<std::streamsize>(start.size()) && start == GeneratedMark();
}

Result<void> RemoveStale(const fs::path& root, const GeneratedFiles& files,
                         const std::set<std::string>& extensions, WriteReport& report) {
  std::error_code code;
  std::vector<fs::path> folders;
  std::set<std::string> stale;
  fs::recursive_directory_iterator at(root, code);
  for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) folders.push_back(at->path());
    if (!at->is_regular_file(ignored) || !extensions.contains(at->path().extension().string())) {
      continue;
    }
    const std::string relative = at->path().lexically_relative(root).generic_string();
    if (!files.contains(relative)) stale.insert(relative);
  }
  for (const std::string& relative : stale) {
    const fs::path path = root / relative;
    if (!IsOurs(path.string())) {
      report.kept.push_back(relative);
      continue;
    }
    if (!fs::remove(path, code)) return Failed("remove", path.string(), code.message());
    report.removed.push_back(relative);
  }
  // Deepest first; remove() leaves folders alone that are not empty.
  if (report.removed.empty()) return {};
  std::sort(folders.rbegin(), folders.rend());
  for (const fs::path& folder : folders) fs::remove(folder, code);
  return {};
}

}  // namespace

Result<std::string> ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Failed("read", path, "it cannot be opened");
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

Result<bool> WriteIfChanged(const std::string& path, const std::string& content) {
  std::error_code code;
  if (fs::exists(path, code)) {
    Result<std::string> old = ReadWholeFile(path);
    if (old.ok() && old.value() == content) return false;
  }
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, code);
  if (code) return Failed("create the folder of", path, code.message());
  const std::string temporary = path + ".tmp";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out) {
    fs::remove(temporary, code);
    return Failed("write", path, "the disk may be full, or the folder may not be writable");
  }
  fs::rename(temporary, path, code);
  if (code) return Failed("write", path, code.message());
  return true;
}

Result<bool> WriteOnce(const std::string& path, const std::string& content) {
  std::error_code code;
  if (fs::exists(path, code)) return false;
  return WriteIfChanged(path, content);
}

Result<WriteReport> WriteFiles(const std::string& directory, const GeneratedFiles& files,
                               const std::set<std::string>& extensions) {
  WriteReport report;
  const fs::path root(directory);
  for (const auto& [relative, content] : files) {
    const std::string path = (root / relative).string();
    std::error_code code;
    if (fs::exists(path, code) && !IsOurs(path)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("'{}' is in the way: it was not written by zeze gen; choose another "
                               "output directory or move it",
                               path));
    }
    Result<bool> written = WriteIfChanged(path, content);
    if (!written.ok()) return written.error();
    if (written.value()) {
      report.written.push_back(relative);
    } else {
      ++report.unchanged;
    }
  }
  if (Result<void> removed = RemoveStale(root, files, extensions, report); !removed.ok()) {
    return removed.error();
  }
  return report;
}

std::string FormatDepfile(const std::string& target, const std::vector<std::string>& files) {
  const auto escape = [](const std::string& path) {
    std::string text;
    for (char c : path) {
      if (c == ' ' || c == '#' || c == '\\') text += '\\';
      if (c == '$') text += '$';
      text += c;
    }
    return text;
  };
  std::string text = escape(target) + ":";
  std::set<std::string> seen;
  for (const std::string& file : files) {
    std::error_code code;
    const fs::path absolute = fs::absolute(file, code);
    const std::string path = code ? file : absolute.lexically_normal().string();
    if (seen.insert(path).second) text += " \\\n  " + escape(path);
  }
  return text + "\n";
}

}  // namespace zeze::gen
