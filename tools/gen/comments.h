// The comment that belongs to an element of a schema, to be emitted with the code it becomes.

#pragma once

#include <string>

#include "zeze/xml/document.h"

namespace zeze::gen {

// Of beans, modules, protocols, tables and the like: attribute `comment`; else the first line of
// text inside, before any element; else, for an element without children, the rest of its line;
// else the XML comment or the last line of text before it.
std::string CommentOf(const xml::Element& element);

// Of variables and enums: attribute `comment` (or `description`); else the text that follows the
// element; else an XML comment that follows it in its line, or stands above it.
std::string TrailingCommentOf(const xml::Element& element);

}  // namespace zeze::gen
