// The types of the schema that hold beans.

import type { Bean, BeanClass, Codec, KeyCodec } from "./bean.js";
import { checkValue, describeValue, EncodeError } from "./errors.js";
import { TypeCode } from "./type_code.js";

/** A bean. The class is asked for when it is needed, as files may import each other. */
export function bean<B extends Bean>(type: () => BeanClass<B>): Codec<B> {
  return {
    code: TypeCode.Bean,
    zero: () => new (type())(),
    isZero: () => false,
    write(out, value) {
      checkValue(value instanceof type(), value, type().fullName);
      value.encode(out);
    },
    read(input, code) {
      if (code === TypeCode.Dynamic) input.readLong();
      else if (code !== TypeCode.Bean) input.failType("bean", code);
      const value = new (type())();
      value.decode(input);
      return value;
    },
  };
}

/** A beankey: ordered field by field. */
export function beanKey<B extends Bean>(type: () => BeanClass<B>): KeyCodec<B> {
  return {
    ...bean(type),
    compare(a, b) {
      const left = a as unknown as Readonly<Record<string, unknown>>;
      const right = b as unknown as Readonly<Record<string, unknown>>;
      for (const { name, codec } of type().fields) {
        const order = (codec as KeyCodec<unknown>).compare(left[name], right[name]);
        if (order !== 0) return order;
      }
      return 0;
    },
  };
}

export type Choice<B extends Bean> = readonly [typeId: bigint, type: BeanClass<B>];

/** One of several beans, or null. */
export function dynamic<B extends Bean>(choices: () => readonly Choice<B>[]): Codec<B | null> {
  return {
    code: TypeCode.Dynamic,
    zero: () => null,
    isZero: (value) => value === null,
    write(out, value) {
      if (value === null) {
        out.writeInt(0);
        out.writeEnd();
        return;
      }
      const choice = choices().find(([, type]) => value?.constructor === type);
      if (choice === undefined) {
        const names = choices().map(([, type]) => type.fullName);
        throw new EncodeError(`${describeValue(value)} is none of ${names.join(", ")}`);
      }
      out.writeLong(choice[0]);
      value.encode(out);
    },
    read(input, code) {
      if (code !== TypeCode.Dynamic && code !== TypeCode.Bean) input.failType("dynamic", code);
      const typeId = code === TypeCode.Dynamic ? input.readLong() : 0n;
      if (typeId === 0n) {
        input.skip(TypeCode.Bean);
        return null;
      }
      const choice = choices().find(([id]) => id === typeId);
      if (choice === undefined) {
        return input.fail(`type id ${typeId} is not among the choices of this dynamic variable`);
      }
      const value = new choice[1]();
      value.decode(input);
      return value;
    },
  };
}
