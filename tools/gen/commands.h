// The generator's sub-commands of the `zeze` program.
//
//   CLI::App app{"zeze"};
//   int exit_code = 0;
//   zeze::gen::AddGenCommand(app, exit_code);
//   zeze::gen::AddNewCommand(app, exit_code);
//   CLI11_PARSE(app, argc, argv);
//   return exit_code;

#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace zeze::gen {

// `exit_code` is set when the command has run; it must outlive the app.
void AddGenCommand(CLI::App& app, int& exit_code);
void AddNewCommand(CLI::App& app, int& exit_code);

}  // namespace zeze::gen
