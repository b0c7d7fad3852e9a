import { Auth, BAuth } from "./builtin/Zeze/Builtin/LinkdAuth.js";
import type { Link } from "./client.js";
import { utf8Length, utf8Write } from "./utf8.js";

/**
 * For onConnected: says to `zeze linkd` who the client is. Each connection needs a new token, as a
 * token is good for once; `appVersion` is the client's, 0n takes servers of any version.
 *
 *     new ZezeClient({ onConnected: authenticateBy(async () => tokenFromHex(await fetchToken())) })
 */
export function authenticateBy(
  newToken: () => Uint8Array | Promise<Uint8Array>,
  appVersion = 0n,
): (link: Link) => Promise<void> {
  return async (link) => {
    await link.call(Auth, new BAuth({ token: await newToken(), appVersion }));
  };
}

/** A token as `zeze linkd token` prints it. */
export function tokenFromHex(hex: string): Uint8Array {
  const digits = hex.trim();
  if (!/^([0-9a-fA-F]{2})+$/.test(digits)) {
    throw new Error("a token consists of an even number of hexadecimal digits");
  }
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** For `zeze linkd --insecure-accounts`, which believes everybody: the token is the account. */
export function tokenOfAccount(account: string): Uint8Array {
  const token = new Uint8Array(utf8Length(account));
  utf8Write(account, token, 0);
  return token;
}
