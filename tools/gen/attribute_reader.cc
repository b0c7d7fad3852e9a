#include "tools/gen/attribute_reader.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/gen/language.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::gen {

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  text = Trim(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t magnitude = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63U;
  if (magnitude > kMost || (magnitude == kMost && !negative)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

AttributeReader::AttributeReader(const xml::Element& element, std::string_view kind,
                                 Diagnostics& diagnostics)
    : element_(element), diagnostics_(diagnostics) {
  KnownSchemaNames().Check(element, kind, diagnostics);
  NoteMeaningless(kind);
}

void AttributeReader::NoteMeaningless(std::string_view kind) {
  const ElementInfo* info = FindElementInfo(kind);
  if (info == nullptr) return;
  for (const AttributeInfo& attribute : info->attributes) {
    if (attribute.use == AttributeUse::kRead || !Has(attribute.name)) continue;
    diagnostics_.NoteOnce(At(attribute.name),
                          fmt::format("'{}' of <{}> has no meaning in C++ and is ignored: {}",
                                      attribute.name, info->name, attribute.about));
  }
}

std::string AttributeReader::Describe() const {
  const std::string name = element_.GetAttribute("name");
  if (name.empty()) return fmt::format("<{}>", element_.name());
  return fmt::format("{} '{}'", element_.name(), name);
}

std::string AttributeReader::Name(bool reserved_words_allowed) {
  std::string name = element_.GetAttribute("name");
  if (!Has("name")) {
    diagnostics_.Error(element_.location(), fmt::format("<{}> has no name", element_.name()),
                       "add name=\"...\"");
    return {};
  }
  if (const std::string why = WhyNotAName(name); !why.empty()) {
    diagnostics_.Error(
        At("name"), fmt::format("'{}' cannot be the name of a {}: {}", name, element_.name(), why),
        "use letters, digits and '_' inside, starting with a letter");
    return {};
  }
  if (!reserved_words_allowed && IsReservedWord(name)) {
    diagnostics_.Error(
        At("name"),
        fmt::format("'{}' cannot be the name of a {}: a programming language reserves the word",
                    name, element_.name()),
        fmt::format("for example '{}Info' or 'My{}'", name, UpperFirst(name)));
    return {};
  }
  return name;
}

std::string AttributeReader::Text(std::string_view attribute, std::string_view otherwise) const {
  return std::string(Trim(element_.GetAttribute(attribute, otherwise)));
}

std::string AttributeReader::RequiredText(std::string_view attribute) {
  std::string text = Text(attribute);
  if (text.empty()) {
    diagnostics_.Error(At(attribute), fmt::format("{} has no {}", Describe(), attribute),
                       fmt::format("add {}=\"...\"", attribute));
  }
  return text;
}

bool AttributeReader::Bool(std::string_view attribute, bool otherwise) {
  const std::string text = ToLower(Text(attribute));
  if (text.empty()) return otherwise;
  if (text == "true" || text == "1") return true;
  if (text != "false" && text != "0") {
    diagnostics_.Error(At(attribute), fmt::format("{} of {} is '{}'", attribute, Describe(), text),
                       "write true or false");
  }
  return false;
}

std::int64_t AttributeReader::Int(std::string_view attribute, std::int64_t otherwise,
                                  std::int64_t least, std::int64_t most) {
  const std::string text = Text(attribute);
  if (text.empty()) return otherwise;
  const std::optional<std::int64_t> value = ParseInteger(text);
  if (!value || *value < least || *value > most) {
    diagnostics_.Error(At(attribute), fmt::format("{} of {} is '{}'", attribute, Describe(), text),
                       fmt::format("write a whole number from {} to {}", least, most));
    return otherwise;
  }
  return *value;
}

std::int64_t AttributeReader::Milliseconds(std::string_view attribute, std::int64_t otherwise) {
  std::string text = Text(attribute);
  if (text.empty()) return otherwise;
  std::int64_t factor = 1;
  if (text.ends_with("ms")) {
    text.resize(text.size() - 2);
  } else if (text.ends_with('s')) {
    text.resize(text.size() - 1);
    factor = 1000;
  }
  const std::optional<std::int64_t> value = ParseInteger(text);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (!value || *value < 0 || *value > kMost / factor) {
    diagnostics_.Error(At(attribute),
                       fmt::format("{} of {} is '{}'", attribute, Describe(), Text(attribute)),
                       "write a time such as 5s, 500ms or 5000 (milliseconds)");
    return otherwise;
  }
  return *value * factor;
}

Level AttributeReader::TransactionLevel(std::string_view attribute, Level otherwise) {
  const std::string text = Text(attribute);
  if (text.empty()) return otherwise;
  if (text == "None") return Level::kNone;
  if (text == "Serializable") return Level::kSerializable;
  if (text == "AllowDirtyWhenAllRead") return Level::kAllowDirtyWhenAllRead;
  if (attribute == "NoProcedure" && text == "true") return Level::kNone;
  if (attribute == "NoProcedure" && text == "false") return Level::kSerializable;
  diagnostics_.Error(At(attribute),
                     fmt::format("unknown transaction level '{}' of {}", text, Describe()),
                     "write None, Serializable or AllowDirtyWhenAllRead");
  return otherwise;
}

HandleFlags AttributeReader::Handle(std::string_view attribute) {
  HandleFlags flags;
  std::string_view rest = element_.FindAttribute(attribute) == nullptr
                              ? std::string_view()
                              : element_.FindAttribute(attribute)->value;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string word = ToLower(Trim(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (word == "server") {
      flags.server = true;
    } else if (word == "client") {
      flags.client = true;
    } else if (word == "serverscript") {
      flags.server_script = true;
    } else if (word == "clientscript") {
      flags.client_script = true;
    } else if (word == "servlet") {
      flags.servlet = true;
    } else if (!word.empty()) {
      std::string hint =
          xml::DidYouMean(word, {"server", "client", "serverscript", "clientscript", "servlet"});
      if (hint.empty()) hint = "write server, client, serverscript, clientscript or servlet";
      diagnostics_.Error(At(attribute), fmt::format("unknown handle '{}' of {}", word, Describe()),
                         std::move(hint));
    }
  }
  return flags;
}

std::string AttributeReader::Choice(std::string_view attribute, std::string_view otherwise,
                                    const std::vector<std::string_view>& choices) {
  std::string text = Text(attribute, otherwise);
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  diagnostics_.Error(At(attribute), fmt::format("{} of {} is '{}'", attribute, Describe(), text),
                     fmt::format("write one of: {}", fmt::join(choices, ", ")));
  return std::string(otherwise);
}

}  // namespace zeze::gen
