// Proofs: how a server and a Global show each other that they can read the same database. Rule 57
// of docs/architecture.md.
//
// The database has a secret for each epoch and for each term. Each side of a connection sends bytes
// that were never used before (a nonce), and proves itself with an HMAC-SHA256 under its secret
// over both nonces and what it claims.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zeze::global {

// 16 random bytes: a secret, or a nonce.
std::string NewSecret();

// What a proof covers.
struct Claim {
  std::string_view server_nonce;
  std::string_view global_nonce;
  std::string_view cluster;
  std::int32_t shard = 0;
};

// Of a Global: it is that of this term.
std::string ProofOfTerm(std::string_view secret, const Claim& claim, std::int64_t term);
// Of a server: it is the process of this epoch.
std::string ProofOfEpoch(std::string_view secret, const Claim& claim, std::int32_t server_id,
                         std::int64_t epoch);

// In a time that does not depend on where they differ. An empty proof proves nothing.
bool SameProof(std::string_view expected, std::string_view given);

}  // namespace zeze::global
