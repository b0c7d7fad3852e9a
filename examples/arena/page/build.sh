#!/usr/bin/env bash
# Builds the page: build.sh OUT ZEZE
# OUT gets what a web server hands out; ZEZE is the zeze program. Needs node 18 or later and npm.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=$1
zeze=$2
work=$out.work
mkdir -p "$out" "$work/client" "$work/page"
out=$(cd "$out" && pwd)
work=$(cd "$work" && pwd)

# The client package. Its packages are installed again only when the lock file has changed.
cp -R "$root"/clients/typescript/{.npmrc,package.json,package-lock.json,tsconfig.json,src} "$work/client/"
if ! cmp -s "$work/client/package-lock.json" "$work/client/node_modules/.installed-lock.json"; then
  (cd "$work/client" && npm ci --ignore-scripts --prefer-offline --no-audit --no-fund --silent)
  cp "$work/client/package-lock.json" "$work/client/node_modules/.installed-lock.json"
fi
tsc=$work/client/node_modules/.bin/tsc
(cd "$work/client" && "$tsc" -p tsconfig.json)

# The page, with code from the schema of the arena.
cp "$here/main.ts" "$work/page/"
"$zeze" gen "$root/examples/arena/solution.xml" --language typescript --out "$work/page/gen/arena" --quiet
cat > "$work/tsconfig.json" <<JSON
{
  "compilerOptions": {
    "target": "ES2022",
    "module": "ES2022",
    "moduleResolution": "bundler",
    "lib": ["ES2022", "DOM", "DOM.Iterable"],
    "types": [],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "rootDir": "page",
    "outDir": "$out",
    "paths": { "zeze-client": ["./client/dist/index.d.ts"] }
  },
  "include": ["page"]
}
JSON
"$tsc" -p "$work/tsconfig.json"
cp "$here/index.html" "$here/style.css" "$out/"
rm -rf "$out/zeze-client"
cp -R "$work/client/dist" "$out/zeze-client"
