#include "comm/communicator.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace bev {

namespace {

void check_rows(const char* call, const ConstTensor& shard, const ConstTensor& whole, int size) {
  BEV_CHECK(shard.dtype == whole.dtype && is_contiguous(shard) && is_contiguous(whole) &&
                shard.shape.elements() * size == whole.shape.elements(),
            Internal, "{}: shard {} of whole {} over {} ranks", call, to_string(shard.shape),
            to_string(whole.shape), size);
}

// Elements of a row: dim 0 counts rows.
int64_t row_width(const ConstTensor& t) {
  int64_t width = 1;
  for (int dim = 1; dim < t.shape.rank(); ++dim) width *= t.shape[dim];
  return width;
}

bool have_equal_rows(const ConstTensor& a, const ConstTensor& b) {
  return a.present() && b.present() && a.dtype == b.dtype && is_contiguous(a) && is_contiguous(b) &&
         row_width(a) == row_width(b);
}

// Whether the bounds divide the rows among the ranks.
bool divide_rows(Communicator::Counts bounds, int64_t rows, int ranks) {
  return bounds.size() == static_cast<size_t>(ranks) + 1 && bounds.front() == 0 &&
         bounds.back() == rows && std::is_sorted(bounds.begin(), bounds.end());
}

void check_shards(const char* call, const ConstTensor& shard, const ConstTensor& whole,
                  Communicator::Counts bounds, const Communicator& ranks) {
  BEV_CHECK(divide_rows(bounds, whole.rows(), ranks.size()), Internal,
            "{}: bounds {} of whole {} over {} ranks", call, fmt::join(bounds, ", "),
            to_string(whole.shape), ranks.size());
  const auto r = static_cast<size_t>(ranks.rank());
  BEV_CHECK(have_equal_rows(shard, whole) && shard.rows() == bounds[r + 1] - bounds[r], Internal,
            "{}: shard {} of whole {} for rows {} to {}", call, to_string(shard.shape),
            to_string(whole.shape), bounds[r], bounds[r + 1]);
}

// Whether the counts, one per rank, add up to the rows.
bool add_up(Communicator::Counts counts, int64_t rows, int ranks) {
  for (const int64_t count : counts) {
    if (count < 0 || count > rows) return false;
    rows -= count;
  }
  return rows == 0 && counts.size() == static_cast<size_t>(ranks);
}

void check_counts(const char* which, Communicator::Counts counts, const ConstTensor& t, int ranks) {
  BEV_CHECK(add_up(counts, t.rows(), ranks), Internal,
            "all_to_all: rows {} {} ranks: {}; tensor {}", which, ranks, fmt::join(counts, ", "),
            to_string(t.shape));
}

bool overlap(const ConstTensor& a, const ConstTensor& b) {
  if (a.data == nullptr || b.data == nullptr || bytes_of(a) == 0 || bytes_of(b) == 0) return false;
  const std::less<const std::byte*> is_before;
  return is_before(a.data, b.data + bytes_of(b)) && is_before(b.data, a.data + bytes_of(a));
}

template <class T>
T flattened(const T& t) {
  return reshape(t, {t.shape.elements()});
}

// Reports a collective as the current activity while it lives. An error ends it too: the text
// belongs to the communicator.
class ActivityScope {
 public:
  ActivityScope(Activity* activity, const char* what, size_t bytes, const std::string* peers)
      : activity_(activity) {
    if (activity_ != nullptr) activity_->begin(what, bytes, peers);
  }
  ~ActivityScope() {
    if (activity_ != nullptr) activity_->end();
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Activity* activity_;
};

}  // namespace

Communicator::Communicator(int rank, int size)
    : rank_(rank),
      size_(size),
      bounds_(static_cast<size_t>(size) + 1),
      to_(static_cast<size_t>(size)),
      from_(static_cast<size_t>(size)),
      even_rows_(static_cast<size_t>(size)) {}

void Communicator::count(Exec& ex, const char* call, const ConstTensor& operand, double bytes) {
  bytes_sent_ += bytes;
  if (ex.cost == nullptr || size_ == 1) return;
  OpCost& record = ex.cost->add(call, ex.stream.index());
  record.dims = shape_dims(operand.shape);
  record.dtype = record.out = operand.dtype;
  record.group = label_;
  record.bytes_sent = bytes;
}

void Communicator::report_to(Activity& activity, std::string peers) {
  activity_ = &activity;
  peers_ = std::move(peers);
}

void Communicator::pass(Exec& ex, const char* what, size_t bytes,
                        FunctionRef<void(Exec& ex)> exchange) {
  if (size_ == 1) return exchange(ex);
  const ActivityScope scope(activity_, what, bytes, &peers_);
  // What it is made of does not show for itself.
  Exec inner = ex;
  inner.trace = nullptr;
  inner.waits = nullptr;
  if (ex.trace != nullptr) ex.trace->begin(what, ex.stream);
  if (ex.waits != nullptr) ex.waits->begin(ex.stream);
  exchange(inner);
  if (ex.waits != nullptr) ex.waits->end(ex.stream);
  if (ex.trace != nullptr) ex.trace->end(ex.stream);
}

void Communicator::all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  BEV_CHECK(is_contiguous(inout), Internal, "all_reduce of a tensor with gaps");
  // A ring sends each byte twice, less the part a rank keeps.
  count(ex, "all_reduce", inout, 2.0 * static_cast<double>(bytes_of(inout)) * (size_ - 1) / size_);
  pass(ex, "all_reduce", bytes_of(inout), [&](Exec& inner) { do_all_reduce(inner, inout, op); });
}

void Communicator::all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  check_rows("all_gather", shard, whole, size_);
  set_even_bounds(shard.shape.elements());
  gather_shards(ex, shard, whole);
}

void Communicator::all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) {
  check_shards("all_gather", shard, whole, bounds, *this);
  set_bounds(bounds, row_width(whole));
  gather_shards(ex, shard, whole);
}

void Communicator::gather_shards(Exec& ex, const ConstTensor& shard, const Tensor& whole) {
  count(ex, "all_gather", shard, static_cast<double>(bytes_of(shard)) * (size_ - 1));
  pass(ex, "all_gather", bytes_of(whole),
       [&](Exec& inner) { do_all_gather(inner, flattened(shard), flattened(whole), bounds_); });
}

void Communicator::reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  check_rows("reduce_scatter", shard, whole, size_);
  set_even_bounds(shard.shape.elements());
  scatter_sums(ex, whole, shard);
}

void Communicator::reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) {
  check_shards("reduce_scatter", shard, whole, bounds, *this);
  set_bounds(bounds, row_width(whole));
  scatter_sums(ex, whole, shard);
}

void Communicator::scatter_sums(Exec& ex, const ConstTensor& whole, const Tensor& shard) {
  count(ex, "reduce_scatter", whole, static_cast<double>(bytes_of(whole) - bytes_of(shard)));
  pass(ex, "reduce_scatter", bytes_of(whole),
       [&](Exec& inner) { do_reduce_scatter(inner, flattened(whole), bounds_, flattened(shard)); });
}

void Communicator::set_even_bounds(int64_t elements) {
  for (size_t r = 0; r < bounds_.size(); ++r) bounds_[r] = elements * static_cast<int64_t>(r);
}

void Communicator::set_bounds(Counts rows, int64_t width) {
  for (size_t r = 0; r < bounds_.size(); ++r) bounds_[r] = rows[r] * width;
}

void Communicator::all_to_all(Exec& ex, ConstTensor in, Tensor out) {
  std::fill(even_rows_.begin(), even_rows_.end(), in.rows() / size_);
  all_to_all(ex, in, even_rows_, out, even_rows_);
}

void Communicator::all_to_all(Exec& ex, ConstTensor in, Counts rows_to, Tensor out,
                              Counts rows_from) {
  BEV_CHECK(have_equal_rows(in, out) && !overlap(in, out), Internal, "all_to_all of {} {} to {} {}",
            to_string(in.shape), name_of(in.dtype), to_string(out.shape), name_of(out.dtype));
  check_counts("to", rows_to, in, size_);
  check_counts("from", rows_from, out, size_);
  const auto here = static_cast<size_t>(rank_);
  BEV_CHECK(rows_to[here] == rows_from[here], Internal,
            "all_to_all: rank {} sends itself {} rows and expects {}", rank_, rows_to[here],
            rows_from[here]);
  const int64_t width = row_width(in);
  for (size_t r = 0; r < to_.size(); ++r) {
    to_[r] = rows_to[r] * width;
    from_[r] = rows_from[r] * width;
  }
  const auto kept = static_cast<size_t>(to_[here]) * size_of(in.dtype);
  count(ex, "all_to_all", in, static_cast<double>(bytes_of(in) - kept));
  pass(ex, "all_to_all", bytes_of(in),
       [&](Exec& inner) { do_all_to_all(inner, flattened(in), to_, flattened(out), from_); });
}

void Communicator::broadcast(Exec& ex, Tensor inout, int root) {
  BEV_CHECK(root >= 0 && root < size_, Internal, "broadcast from {} of {}", root, size_);
  count(ex, "broadcast", inout,
        rank_ == root ? static_cast<double>(bytes_of(inout)) * (size_ - 1) : 0);
  pass(ex, "broadcast", bytes_of(inout), [&](Exec& inner) { do_broadcast(inner, inout, root); });
}

SendTicket Communicator::send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  BEV_CHECK(to >= 0 && to < size_ && to != rank_, Internal, "send from {} to {}", rank_, to);
  BEV_CHECK(is_contiguous(tensor), Internal, "send of a tensor with gaps");
  count(ex, "send", tensor, static_cast<double>(bytes_of(tensor)));
  return {to, channel, do_send(ex, tensor, to, channel)};
}

void Communicator::wait_send(Exec& ex, const SendTicket& sent) {
  if (sent.present()) pass(ex, "send", 0, [&](Exec& inner) { do_await(inner, sent); });
}

void Communicator::recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  BEV_CHECK(from >= 0 && from < size_ && from != rank_, Internal, "recv at {} from {}", rank_,
            from);
  BEV_CHECK(is_contiguous(tensor), Internal, "recv into a tensor with gaps");
  pass(ex, "recv", bytes_of(tensor), [&](Exec& inner) { do_recv(inner, tensor, from, channel); });
}

std::string broadcast_text(Communicator& ranks, const std::string& here, int root) {
  constexpr size_t kBytes = 7;  // of a number that is not negative
  const bool is_root = ranks.rank() == root;
  const auto size = static_cast<size_t>(
      ranks.all_reduce_max_host(is_root ? static_cast<int64_t>(here.size()) : 0));
  std::string text;
  while (text.size() < size) {
    uint64_t packed = 0;
    for (size_t i = 0; is_root && i < std::min(kBytes, size - text.size()); ++i)
      packed |= uint64_t{static_cast<unsigned char>(here[text.size() + i])} << (8 * i);
    packed = static_cast<uint64_t>(ranks.all_reduce_max_host(static_cast<int64_t>(packed)));
    for (size_t i = std::min(kBytes, size - text.size()); i > 0; --i, packed >>= 8)
      text.push_back(static_cast<char>(packed & 0xff));
  }
  return text;
}

std::unique_ptr<Communicator> SingleCommunicator::split(std::span<const int> ranks) {
  BEV_CHECK(ranks.size() == 1 && ranks[0] == 0, Internal, "a world of one has one group");
  return std::make_unique<SingleCommunicator>();
}

void SingleCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts) {
  ex.device.copy_on(ex.stream, shard.data, whole.data, bytes_of(shard));
}

void SingleCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Counts, Tensor shard) {
  ex.device.copy_on(ex.stream, whole.data, shard.data, bytes_of(whole));
}

void SingleCommunicator::do_all_to_all(Exec& ex, ConstTensor in, Counts, Tensor out, Counts) {
  ex.device.copy_on(ex.stream, in.data, out.data, bytes_of(in));
}

uint64_t SingleCommunicator::do_send(Exec&, ConstTensor, int, Channel) {
  throw Error(ErrorKind::Internal, "a single rank has nobody to send to");
}

void SingleCommunicator::do_recv(Exec&, Tensor, int, Channel) {
  throw Error(ErrorKind::Internal, "a single rank has nobody to receive from");
}

}  // namespace bev
