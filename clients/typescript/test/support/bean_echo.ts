// The C++ program that decodes and encodes beans of tests/gen/wide.xml.

import { execFileSync } from "node:child_process";

import type { Bean, BeanClass } from "zeze-client";

import * as wide from "../../generated/wide.js";
import * as Game from "../../generated/wide/Game.js";
import * as Ping from "../../generated/wide/Ping.js";
import * as Pong from "../../generated/wide/Pong.js";
import * as Types from "../../generated/wide/Types.js";
import * as Other from "../../generated/wide/Types/Other.js";
import { fromHex, toHex } from "./hex.js";

const program = process.env["ZEZE_BEAN_ECHO"];

/** Without the program these tests cannot run: the build of the repository makes it. */
export const skipWithoutEcho = program === undefined ? "ZEZE_BEAN_ECHO is not set" : false;

const classes: readonly BeanClass<Bean>[] = [
  wide.BShared,
  Game.BLogin,
  Game.BLoginResult,
  Ping.BA,
  Pong.BD,
  Types.BAwkward,
  Types.BContainers,
  Types.BDefaults,
  Types.BDynamics,
  Types.BNode,
  Types.BScalars,
  Types.BVersioned,
  Types.BWideKey,
  Other.BSub,
];

export function classNamed(fullName: string): BeanClass<Bean> {
  const found = classes.find((type) => type.fullName === fullName);
  if (found === undefined) throw new Error(`no class for ${fullName}`);
  return found;
}

export interface Encoded {
  readonly type: BeanClass<Bean>;
  readonly bytes: Uint8Array;
}

// One seed for all runs: with different seeds they would write maps and sets in different orders.
const env = { ...process.env, ZEZE_HASH_SEED: "1" };

function run(args: readonly string[], input: string): string[] {
  const output = execFileSync(program ?? "", args, { input, env, maxBuffer: 1 << 28 }).toString();
  return output.split("\n").slice(0, -1);
}

/** Beans with something in every variable. */
export function samples(): Encoded[] {
  return run(["samples"], "").map((line) => {
    const [name = "", hex = ""] = line.split(" ");
    return { type: classNamed(name), bytes: fromHex(hex) };
  });
}

/** What C++ makes of each: its own encoding, in hex, or "error". */
export function echo(beans: readonly Encoded[]): string[] {
  const lines = beans.map(({ type, bytes }) => `${type.fullName} ${toHex(bytes)}\n`);
  return run([], lines.join(""));
}
