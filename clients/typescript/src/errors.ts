/** Bytes that are not what the format says. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

/** A value that its type in the schema cannot hold: 1.5 in an int, 300 in a byte. */
export class EncodeError extends Error {
  override readonly name = "EncodeError";

  constructor(
    readonly problem: string,
    /** The fields that lead to it: "items.count". */
    readonly path: string = "",
  ) {
    super(path === "" ? problem : `${path}: ${problem}`);
  }

  /** The same, seen from the bean that holds it. */
  static inside(field: string, error: unknown): unknown {
    if (!(error instanceof EncodeError)) return error;
    return new EncodeError(error.problem, error.path === "" ? field : `${field}.${error.path}`);
  }
}

/** Throws unless the value is one of the type. */
export function checkValue(good: boolean, value: unknown, type: string): void {
  if (!good) throw new EncodeError(`${describeValue(value)} is no ${type}`);
}

export function describeValue(value: unknown): string {
  if (typeof value === "string") return `the text ${JSON.stringify(value.slice(0, 40))}`;
  if (typeof value !== "object" || value === null) return String(value);
  return `a ${value.constructor.name}`;
}
