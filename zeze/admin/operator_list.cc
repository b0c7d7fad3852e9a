#include "zeze/admin/operator_list.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/admin/operator_key.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze::admin {

namespace {

constexpr std::size_t kNameBytesMax = 64;

Result<Operator> ParseLine(std::string_view line, const std::vector<Operator>& before) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  while ((begin = line.find_first_not_of(" \t", begin)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  if (words.size() != 2) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("expected a name and a public key, for example \"alice "
                             "ed25519:8f0c...\", but there are {} words",
                             words.size()));
  }
  if (!IsOperatorName(words[0])) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is not a name: expected up to {} letters, digits and - _ . @",
                             words[0], kNameBytesMax));
  }
  Result<std::string> key = ParsePublicKey(words[1]);
  if (!key.ok()) return key.error();
  for (const Operator& other : before) {
    if (other.name == words[0]) {
      return Error(ErrorCode::kInvalidArgument, fmt::format("{} is there twice", words[0]));
    }
    if (other.public_key == key.value()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{} has the key of {}; every operator has a key of their own",
                               words[0], other.name));
    }
  }
  return Operator{.name = std::string(words[0]), .public_key = std::move(key).value()};
}

}  // namespace

bool IsOperatorName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.' || c == '@';
         });
}

Result<std::vector<Operator>> ParseOperators(std::string_view text, std::string_view file_name) {
  std::vector<Operator> operators;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Result<Operator> one = ParseLine(line, operators);
    if (!one.ok()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}:{}: {}", file_name, number, one.error().message()));
    }
    operators.push_back(std::move(one).value());
  }
  if (operators.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: there are no operators in it; expected lines of a name and a "
                             "public key, as \"zeze admin keygen\" prints them",
                             file_name));
  }
  return operators;
}

Result<std::vector<Operator>> LoadOperators(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("the file of names and public keys {} cannot be read", path));
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseOperators(text, path);
}

}  // namespace zeze::admin
