#include "net/secure_link.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/byte_coding.h"
#include "base/check.h"
#include "base/format.h"

namespace bev {

namespace {

constexpr std::string_view kIdentity = "job";
constexpr std::array<unsigned char, 2> kCipher{0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr size_t kHandshakeMost = size_t{16} << 10;          // bytes accepted before authentication
constexpr size_t kAhead = size_t{256} << 10;                 // bytes encrypted ahead of writing
constexpr size_t kLengthBytes = 4;

// Data for OpenSSL's callbacks.
struct Offer {
  Sha256Digest psk;
  std::string alpn;  // length byte and version
};

const Offer& offer_of(const SSL* ssl) { return *static_cast<const Offer*>(SSL_get_app_data(ssl)); }

const unsigned char* chars(const void* bytes) { return static_cast<const unsigned char*>(bytes); }

// HKDF-Expand (RFC 5869) of one block. It is the same for all versions, so that another version is
// not reported as another secret.
Sha256Digest psk_of(const HmacKey& secret) {
  constexpr std::string_view kInfo = "bevatron control connection\x01";
  return secret.sign({std::as_bytes(std::span(kInfo))});
}

// The pre-shared key in the form that OpenSSL needs: a session to resume.
SSL_SESSION* session_of(SSL* ssl) {
  const Sha256Digest& psk = offer_of(ssl).psk;
  SSL_SESSION* session = SSL_SESSION_new();
  if (session != nullptr &&
      SSL_SESSION_set1_master_key(session, chars(psk.data()), psk.size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipher.data())) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int use_psk(SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* size, SSL_SESSION** out) {
  *id = chars(kIdentity.data());
  *size = kIdentity.size();
  *out = session_of(ssl);
  return *out != nullptr ? 1 : 0;
}

int find_psk(SSL* ssl, const unsigned char* id, size_t size, SSL_SESSION** out) {
  const bool is_known = std::string_view(reinterpret_cast<const char*>(id), size) == kIdentity;
  *out = is_known ? session_of(ssl) : nullptr;
  return !is_known || *out != nullptr ? 1 : 0;
}

int select_version(SSL* ssl, const unsigned char** out, unsigned char* size,
                   const unsigned char* in, unsigned in_size, void*) {
  if (std::string_view(reinterpret_cast<const char*>(in), in_size) != offer_of(ssl).alpn)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = in + 1;
  *size = in[0];
  return SSL_TLSEXT_ERR_OK;
}

// Kept until the process ends.
SSL_CTX* context() {
  static SSL_CTX* const made = [] {
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    SSL_CTX* all = SSL_CTX_new(TLS_method());
    BEV_CHECK(all != nullptr && SSL_CTX_set_min_proto_version(all, TLS1_3_VERSION) == 1 &&
                  SSL_CTX_set_ciphersuites(all, "TLS_AES_128_GCM_SHA256") == 1 &&
                  SSL_CTX_set1_groups_list(all, "X25519:P-256") == 1 &&
                  SSL_CTX_set_num_tickets(all, 0) == 1,
              Device, "OpenSSL cannot do TLS 1.3");
    SSL_CTX_set_session_cache_mode(all, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(all, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_psk_use_session_callback(all, use_psk);
    SSL_CTX_set_psk_find_session_callback(all, find_psk);
    SSL_CTX_set_alpn_select_cb(all, select_version, nullptr);
    return all;
  }();
  return made;
}

// Why a handshake failed: an error found here, or an alert received from the other end.
const char* handshake_error() {
  switch (ERR_GET_REASON(ERR_peek_error())) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_DIGEST_CHECK_FAILED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR: return "it has another secret";
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: return "it is of another version of Bevatron";
    default: return "it is no rank of a job of Bevatron";
  }
}

}  // namespace

// Only one thread at a time may use `ssl`: `mutex` guards it.
struct SecureLink::Tls {
  Tls(const HmacKey& secret, std::string_view version)
      : offer{.psk = psk_of(secret),
              .alpn = static_cast<char>(version.size()) + std::string(version)},
        ssl(SSL_new(context())),
        in(BIO_new(BIO_s_mem())),
        out(BIO_new(BIO_s_mem())) {
    BEV_CHECK(ssl != nullptr && in != nullptr && out != nullptr, Device, "OpenSSL has no memory");
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl, in, out);
    SSL_set_app_data(ssl, &offer);
    SSL_set_alpn_protos(ssl, chars(offer.alpn.data()), static_cast<unsigned>(offer.alpn.size()));
  }
  ~Tls() { SSL_free(ssl); }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  std::mutex mutex;
  Offer offer;
  SSL* ssl;
  BIO *in, *out;
};

SecureLink::SecureLink(LinkRole role, const HmacKey& secret, size_t message_most,
                       std::string_view version)
    : tls_(std::make_unique<Tls>(secret, version)), message_most_(message_most) {
  if (role == LinkRole::Server) {
    SSL_set_accept_state(tls_->ssl);
  } else {
    SSL_set_connect_state(tls_->ssl);
    // Rejects a server that authenticates with a certificate instead of the key.
    SSL_set_verify(tls_->ssl, SSL_VERIFY_PEER, nullptr);
    shake_hands();
  }
}
SecureLink::~SecureLink() = default;
SecureLink::SecureLink(SecureLink&&) noexcept = default;
SecureLink& SecureLink::operator=(SecureLink&&) noexcept = default;

void SecureLink::receive(std::span<const std::byte> bytes) {
  const std::lock_guard lock(tls_->mutex);
  while (!bytes.empty()) {
    // Limits the bytes accepted before the other end has authenticated.
    const size_t most = is_open_ ? size_t{INT_MAX} : kHandshakeMost - handshake_bytes_;
    const size_t taken = std::min(bytes.size(), most);
    BEV_CHECK(BIO_write(tls_->in, bytes.data(), static_cast<int>(taken)) == static_cast<int>(taken),
              Device, "OpenSSL has no memory");
    bytes = bytes.subspan(taken);
    if (!is_open_) {
      handshake_bytes_ += taken;
      shake_hands();
      BEV_CHECK(is_open_ || handshake_bytes_ < kHandshakeMost, Comm,
                "it is no rank of a job of Bevatron");
    }
    if (is_open_) decrypt();
  }
}

void SecureLink::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(tls_->ssl);
  if (done != 1) {
    BEV_CHECK(SSL_get_error(tls_->ssl, done) == SSL_ERROR_WANT_READ, Comm, "{}", handshake_error());
    return;
  }
  const unsigned char* version = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(tls_->ssl, &version, &size);
  BEV_CHECK(SSL_session_reused(tls_->ssl) == 1, Comm, "it has another secret");
  BEV_CHECK(size + 1 == tls_->offer.alpn.size(), Comm, "it is of another version of Bevatron");
  is_open_ = true;
}

void SecureLink::decrypt() {
  std::array<char, size_t{16} << 10> piece{};
  for (;;) {
    ERR_clear_error();
    const int got = SSL_read(tls_->ssl, piece.data(), static_cast<int>(piece.size()));
    if (got > 0) {
      in_.append(piece.data(), static_cast<size_t>(got));
      continue;
    }
    BEV_CHECK(SSL_get_error(tls_->ssl, got) == SSL_ERROR_WANT_READ, Comm,
              "a record has a wrong signature");
    return;
  }
}

std::optional<std::string> SecureLink::next() {
  const std::string_view rest = std::string_view(in_).substr(in_at_);
  if (rest.size() >= kLengthBytes) {
    const size_t size = ByteReader(rest.substr(0, kLengthBytes)).number<uint32_t>();
    BEV_CHECK(size <= message_most_, Comm, "a message of {} bytes, more than {}", size,
              message_most_);
    if (rest.size() - kLengthBytes >= size) {
      in_at_ += kLengthBytes + size;
      return std::string(rest.substr(kLengthBytes, size));
    }
  }
  in_.erase(0, std::exchange(in_at_, 0));
  if (in_.empty() && in_.capacity() > kAhead) std::string().swap(in_);
  return std::nullopt;
}

void SecureLink::send(Parcel message) {
  BEV_CHECK(is_open_ && message->size() <= UINT32_MAX, Internal, "a message of {} bytes",
            message->size());
  messages_.push_back(std::move(message));
}

void SecureLink::encrypt(std::string_view bytes) {
  if (bytes.empty()) return;
  ERR_clear_error();
  BEV_CHECK(SSL_write(tls_->ssl, bytes.data(), static_cast<int>(bytes.size())) > 0, Comm,
            "its connection has ended");
}

std::string_view SecureLink::outgoing() {
  if (out_at_ < out_.size()) return std::string_view(out_).substr(out_at_);
  out_at_ = 0;
  const std::lock_guard lock(tls_->mutex);
  while (!messages_.empty() && BIO_pending(tls_->out) < static_cast<int>(kAhead)) {
    const std::string& message = *messages_.front();
    ByteWriter first;
    if (message_at_ == 0) first(static_cast<uint32_t>(message.size()));
    const size_t at = message_at_ == 0 ? 0 : message_at_ - kLengthBytes;
    const std::string piece = first.take() + message.substr(at, kAhead);
    encrypt(piece);
    message_at_ += piece.size();
    if (message_at_ < kLengthBytes + message.size()) continue;
    messages_.pop_front();
    message_at_ = 0;
  }
  out_.resize(static_cast<size_t>(BIO_pending(tls_->out)));
  if (!out_.empty()) BIO_read(tls_->out, out_.data(), static_cast<int>(out_.size()));
  return out_;
}

namespace {

constexpr size_t kReadAtOnce = size_t{64} << 10;
constexpr std::chrono::seconds kHandshakeLimit{5};  // including connecting
constexpr int kFairShare = 8;                       // reads before other connections are served

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Reading SecureConnection::receive(FunctionRef<void(std::string message)> take) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kReadAtOnce);
  for (int turn = 0; turn < kFairShare; ++turn) {
    const ssize_t got = ::recv(socket_.get(), buffer.get(), kReadAtOnce, MSG_DONTWAIT);
    if (got == 0) return Reading::Closed;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block()) return Reading::Waits;
    BEV_CHECK(got > 0, Comm, "{}", std::strerror(errno));
    const auto bytes = static_cast<size_t>(got);
    bytes_read_ += bytes;
    link_.receive({buffer.get(), bytes});
    while (std::optional<std::string> message = link_.next()) take(std::move(*message));
    // The rest would block, or makes the descriptor ready again.
    if (bytes < kReadAtOnce) return Reading::Waits;
  }
  return Reading::Waits;
}

bool SecureConnection::flush() {
  for (;;) {
    const std::string_view out = link_.outgoing();
    if (out.empty()) return true;
    const ssize_t put = ::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && would_block()) return false;
    BEV_CHECK(put >= 0, Comm, "{}", std::strerror(errno));
    link_.written(static_cast<size_t>(put));
  }
}

Reading SecureConnection::exchange(SteadyTime until, FunctionRef<void(std::string message)> take) {
  const bool is_done = flush();
  const int failure = wait_for(socket_.get(), is_done ? POLLIN : POLLIN | POLLOUT, until);
  BEV_CHECK(failure == 0 || failure == EAGAIN, Comm, "poll: {}", std::strerror(failure));
  if (failure != 0) return Reading::Waits;
  try {
    return receive(take);
  } catch (const Error&) {
    // Sends the TLS alert, so that the other end can report that the secrets differ.
    try {
      flush();
    } catch (const Error&) {
      // Only the first error is reported.
    }
    throw;
  }
}

void SecureConnection::close_sending() { ::shutdown(socket_.get(), SHUT_WR); }

std::unique_ptr<SecureConnection> connect_securely(const std::string& host, int port,
                                                   const HmacKey& secret, size_t message_most,
                                                   SteadyTime deadline, const std::string& failure,
                                                   std::string& why) {
  std::unique_ptr<SecureConnection> connection;
  uint64_t read = 0;
  try {
    const std::vector<Address> addresses = resolve(host, port);
    const SteadyTime until = std::min(deadline, std::chrono::steady_clock::now() + kHandshakeLimit);
    Socket socket = try_to_connect(addresses, until, why);
    if (!socket.is_open()) return nullptr;
    connection = std::make_unique<SecureConnection>(std::move(socket), LinkRole::Client, secret,
                                                    message_most);
    while (!connection->is_open()) {
      read = connection->bytes_read();
      const bool is_closed =
          connection->exchange(until, [](const std::string&) {}) == Reading::Closed;
      if (is_closed || std::chrono::steady_clock::now() >= until) {
        why = is_closed ? "it closed the connection at once" : "it does not answer";
        return nullptr;
      }
    }
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Comm) throw;
    // Invalid bytes are a permanent error; a connection that broke may work the next time.
    BEV_CHECK(connection == nullptr || connection->bytes_read() == read, Comm, "{}: {}", failure,
              error.what());
    why = error.what();
    return nullptr;
  }
  return connection;
}

namespace {

constexpr uint64_t kOneByOne = 5;
constexpr std::chrono::seconds kPause{10};

}  // namespace

void RefusalLog::refused(const std::string& who, const std::string& why) {
  if (noted_ == kOneByOne) {
    ++not_noted_;
    return;
  }
  ++noted_;
  note_(format("refused a connection from {}: {}", who, why));
}

void RefusalLog::tick(Time now) {
  if (not_noted_ == 0 || now < next_) return;
  next_ = now + kPause;
  note_(format("refused {} more connection{}", not_noted_, not_noted_ == 1 ? "" : "s"));
  not_noted_ = 0;
}

}  // namespace bev
