// The schema compiler alone: the library's own modules are generated with it, before the `zeze`
// program, which needs them, can be built.

#include <CLI/CLI.hpp>

#include "tools/gen/commands.h"

int main(int argc, char** argv) {
  CLI::App app("The schema compiler of zeze; users have it as `zeze gen`.", "zeze_gen_tool");
  int exit_code = 0;
  zeze::gen::AddGenCommand(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
