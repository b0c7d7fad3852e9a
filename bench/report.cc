#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "bench/bench.h"

namespace zeze::bench {

namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// JSON has no word for infinity.
std::string Number(double number) {
  return std::isfinite(number) ? fmt::format("{:.6g}", number) : "null";
}

}  // namespace

bool Goal::Met(double value, double ratio) const {
  if (of == Of::kNothing) return true;
  const double figure = of == Of::kValue ? value : ratio;
  return at_least ? figure >= limit : figure <= limit;
}

std::string Goal::Text(std::string_view unit) const {
  if (of == Of::kNothing) return "";
  const std::string_view sign = at_least ? ">=" : "<=";
  if (of == Of::kValue) return fmt::format("{} {:g} {}", sign, limit, unit);
  return fmt::format("ratio {} {:g}", sign, limit);
}

std::string FiguresAsJson(std::span<const Figure> figures) {
  std::string out = "[";
  std::string_view separator = "\n";
  for (const Figure& figure : figures) {
    fmt::format_to(std::back_inserter(out),
                   "{}  {{\"suite\": {}, \"name\": {}, \"value\": {}, \"unit\": {}, "
                   "\"peer\": {}, \"peer_value\": {}, \"ratio\": {}, \"goal\": {}, \"met\": {}}}",
                   separator, Quoted(figure.suite()), Quoted(figure.name), Number(figure.value),
                   Quoted(figure.unit), Quoted(figure.peer), Number(figure.peer_value),
                   Number(figure.ratio), Quoted(figure.goal.Text(figure.unit)),
                   figure.goal.Met(figure.value, figure.ratio));
    separator = ",\n";
  }
  return out + "\n]\n";
}

}  // namespace zeze::bench
