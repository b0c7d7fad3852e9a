"""gdb shows the containers of beans as what they hold:

  (gdb) source /usr/local/share/zeze/gdb/zeze_printers.py
  (gdb) print role
  $1 = {name = "ann", bag = zeze::Map of 2 = {[7] = 1, [9] = 4}, friends = zeze::Set of 1 = {12}}

A line "source ..." in ~/.gdbinit does it for good. Compile with -g: -g1 has no types."""

import re

import gdb
import gdb.printing

INLINE_BYTES_MAX = 64  # zeze/bean/internal/slot.h: larger elements lie in boxes.
LEAF_HEADER_BYTES = 16  # zeze/bean/internal/sequence.h


def element_at(address, element):
    """The element in a slot."""
    if element.sizeof <= INLINE_BYTES_MAX:
        return gdb.Value(address).cast(element.pointer()).dereference()
    box = gdb.lookup_type(f"zeze::internal::Box<{element.strip_typedefs()}>")
    return gdb.Value(address).cast(box.pointer().pointer()).dereference()["value"]


def slots(address, count, element):
    bytes_each = min(element.sizeof, INLINE_BYTES_MAX)
    if element.sizeof > INLINE_BYTES_MAX:
        bytes_each = gdb.lookup_type("void").pointer().sizeof
    for index in range(count):
        yield element_at(address + index * bytes_each, element)


def sequence(node, element):
    """The elements below a node of a List or SortedMap, in order."""
    if int(node) == 0:
        return
    if int(node["level"]) == 0:
        yield from slots(int(node) + LEAF_HEADER_BYTES, int(node["count"]), element)
        return
    inner = node.cast(gdb.lookup_type("zeze::internal::SequenceInner").pointer())
    for index in range(int(node["count"])):
        yield from sequence(inner["children"][index], element)


def trie(node, element):
    """The entries below a node of a Map or Set."""
    if int(node) == 0:
        return
    data_map, node_map = int(node["data_map"]), int(node["node_map"])
    collision = data_map == 0 and node_map == 0
    count = int(node["size"]) if collision else data_map.bit_count()
    yield from slots(int(node) + int(node["entries_offset"]), count, element)
    children = (node + 1).cast(node.type.pointer())
    for index in range(node_map.bit_count()):
        yield from trie(children[index], element)


def size_of(node):
    return 0 if int(node) == 0 else int(node["size"])


def entry_type(container):
    return gdb.lookup_type(f"zeze::MapEntry<{container.template_argument(0).strip_typedefs()}, "
                           f"{container.template_argument(1).strip_typedefs()}>")


class ListPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return f"zeze::List of {size_of(self.value['root_'])}"

    def children(self):
        element = self.value.type.strip_typedefs().template_argument(0)
        for index, item in enumerate(sequence(self.value["root_"], element)):
            yield f"[{index}]", item

    def display_hint(self):
        return "array"


class SetPrinter:
    def __init__(self, value):
        self.value = value
        self.root = value["table_"]["root_"]

    def to_string(self):
        return f"zeze::Set of {size_of(self.root)}"

    def children(self):
        element = self.value.type.strip_typedefs().template_argument(0)
        for index, item in enumerate(trie(self.root, element)):
            yield f"[{index}]", item

    def display_hint(self):
        return "array"


class MapPrinter:
    def __init__(self, value):
        self.name, self.walk = "Map", trie
        self.entry = entry_type(value.type.strip_typedefs())
        self.root = value["table_"]["root_"]

    def to_string(self):
        return f"zeze::{self.name} of {size_of(self.root)}"

    def children(self):
        for index, entry in enumerate(self.walk(self.root, self.entry)):
            yield f"[{index}].key", entry["key"]
            yield f"[{index}].value", entry["value"]

    def display_hint(self):
        return "map"


class SortedMapPrinter(MapPrinter):
    def __init__(self, value):
        self.name, self.walk = "SortedMap", sequence
        self.entry = entry_type(value.type.strip_typedefs())
        self.root = value["root_"]


class DynamicPrinter:
    """Also shows which bean it holds."""

    def __init__(self, value):
        self.value = value

    def bean(self):
        """The type and the value of the bean; the function that destroys it tells the type."""
        node = self.value["node_"]
        destroy = gdb.execute(f"info symbol {int(node['destroy'])}", to_string=True)
        found = re.match(r"(zeze::internal::DynamicValue<(.*)>)::Destroy\(", destroy)
        if not found:
            return None
        return found[2], node.cast(gdb.lookup_type(found[1]).pointer())["value"]

    def to_string(self):
        if int(self.value["node_"]) == 0:
            return "zeze::Dynamic, empty"
        bean = self.bean()
        return f"zeze::Dynamic {bean[0] if bean else int(self.value['node_']['type_id'])}"

    def children(self):
        bean = self.bean() if int(self.value["node_"]) != 0 else None
        if bean:
            yield "bean", bean[1]


class BinaryPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return self.value["bytes"]


def register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("zeze")
    printers.add_printer("List", "^zeze::List<.*>$", ListPrinter)
    printers.add_printer("Set", "^zeze::Set<.*>$", SetPrinter)
    printers.add_printer("Map", "^zeze::Map<.*>$", MapPrinter)
    printers.add_printer("SortedMap", "^zeze::SortedMap<.*>$", SortedMapPrinter)
    printers.add_printer("Dynamic", "^zeze::Dynamic<.*>$", DynamicPrinter)
    printers.add_printer("Binary", "^zeze::Binary$", BinaryPrinter)
    gdb.printing.register_pretty_printer(None, printers, replace=True)


register()
