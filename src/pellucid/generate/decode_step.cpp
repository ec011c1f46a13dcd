// One step of decoding: the newest tokens of a few sequences through all layers, in one go.
//
// A step is a list of instructions over small buffers, one row a token; program.py makes the list from a model. A team of
// threads carries it out: each instruction is a number of equal pieces of work; a thread does its own share of them and
// then what others have left, and all wait for each other before the next instruction begins.
//
// Every number is summed up in the same order however many tokens a step has and however many threads take part, so a
// sequence gets, bit for bit, what it would get alone.
//
// In: instructions, buffers, the cache.  Out: buffers, the cache.  Used by: program.py, through ctypes.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_num_threads() { return 1; }
static int omp_get_thread_num() { return 0; }
#endif
#ifdef __AVX512F__
#include <immintrin.h>
#endif

typedef float Lanes __attribute__((vector_size(64)));           // 16 numbers side by side, on any machine
typedef int32_t WholeLanes __attribute__((vector_size(64)));
typedef uint16_t HalfLanes __attribute__((vector_size(32)));
typedef int8_t ByteLanes __attribute__((vector_size(16)));
constexpr int WIDTH = 16;
constexpr int AHEAD = 4096;   // bytes that are fetched before they are needed: rows are too short for the processor to guess

enum NumberType : int32_t { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2 };
enum Kind : int32_t { NORM = 0, LINEAR = 1, ROTATE = 2, ATTEND = 3, ACTIVATE = 4, ADD = 5 };
enum Activation : int32_t { SILU = 0, GELU = 1, GELU_TANH = 2, RELU2 = 3 };

struct Instruction {
    int32_t kind, source, target, other;   // numbers of buffers
    int32_t start, width, count;           // a stretch of a row: count parts of this width each, from start on
    int32_t d_in, d_out, number_type, choice, layer, window, num_heads, num_kv_heads, d_head;
    float epsilon, scale;
    const void* weight;
    const float* weight_scale;
    const float* bias;
    const double* frequencies;
};

struct Buffer { float* data; int64_t width; };

struct Cache {
    void** keys;             // by layer: (row, kv_head, place, d_head)
    void** values;
    int64_t capacity;
    int32_t number_type;     // FLOAT32 or BFLOAT16
};

struct Tokens { int32_t count; const int64_t* rows; const int64_t* places; };

static inline Lanes load(const float* from) { Lanes lanes; std::memcpy(&lanes, from, sizeof lanes); return lanes; }

#ifdef __AVX512F__   // GCC 12 takes vectors of bytes apart one by one
static inline Lanes load(const uint16_t* from) {   // a bfloat16 is the front half of a float32
    return (Lanes)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)from)), 16);
}

static inline Lanes load(const int8_t* from) {
    return (Lanes)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)from)));
}
#else
static inline Lanes load(const uint16_t* from) {
    HalfLanes halves;
    std::memcpy(&halves, from, sizeof halves);
    WholeLanes wide = __builtin_convertvector(halves, WholeLanes) << 16;   // a bfloat16 is the front half of a float32
    Lanes lanes;
    std::memcpy(&lanes, &wide, sizeof lanes);
    return lanes;
}

static inline Lanes load(const int8_t* from) {
    ByteLanes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(__builtin_convertvector(bytes, WholeLanes), Lanes);
}
#endif

static inline float widen(float x) { return x; }
static inline float widen(int8_t x) { return x; }
static inline float widen(uint16_t x) {
    uint32_t bits = uint32_t(x) << 16;
    float wide;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
}

static inline void store(float* to, float x) { *to = x; }
static inline void store(uint16_t* to, float x) {   // to the nearest, ties to even, as torch does
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    *to = x != x ? 0x7fc0 : uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float sum(Lanes lanes) {   // halves onto each other, until one is left
    typedef float Eight __attribute__((vector_size(32)));
    typedef float Four __attribute__((vector_size(16)));
    Eight eight = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7)
                + __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
    Four four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

// --- the products: R rows of a matrix with T tokens at once, so that each weight is fetched once for all of them

template <typename Weight, int R, int T>
static void products(const Weight* weight, const float* x, int64_t x_width, int d_in, float (*out)[T]) {
    Lanes sums[R][T] = {};
    int i = 0;
    for (; i + WIDTH <= d_in; i += WIDTH) {
        for (int line = 0; line < int(R * WIDTH * sizeof(Weight)); line += 64)
            __builtin_prefetch((const char*)weight + AHEAD + int64_t(i) * R * sizeof(Weight) + line);
        Lanes w[R];
        for (int r = 0; r < R; r++) w[r] = load(weight + int64_t(r) * d_in + i);
        for (int t = 0; t < T; t++) {
            Lanes input = load(x + t * x_width + i);
            for (int r = 0; r < R; r++) sums[r][t] += w[r] * input;
        }
    }
    for (int r = 0; r < R; r++)
        for (int t = 0; t < T; t++) {
            out[r][t] = sum(sums[r][t]);
            for (int rest = i; rest < d_in; rest++)
                out[r][t] = std::fma(widen(weight[int64_t(r) * d_in + rest]), x[t * x_width + rest], out[r][t]);
        }
}

template <typename Weight, int R, int T>
static void map_rows(const Instruction& it, const float* x, int64_t x_width, float* y, int64_t y_width, int row) {
    float out[R][T];
    products<Weight, R, T>((const Weight*)it.weight + int64_t(row) * it.d_in, x, x_width, it.d_in, out);
    for (int r = 0; r < R; r++)
        for (int t = 0; t < T; t++) {
            // Written as fma, since a compiler may fuse the two in one version of this function and not in another.
            float scale = it.weight_scale ? it.weight_scale[row + r] : 1, bias = it.bias ? it.bias[row + r] : 0;
            y[t * y_width + row + r] = std::fma(out[r][t], scale, bias);
        }
}

template <typename Weight, int T>
static void map_tokens(const Instruction& it, const Buffer& in, const Buffer& out, int first, int begin, int end) {
    const float* x = in.data + first * in.width;
    float* y = out.data + first * out.width;
    int row = begin;
    constexpr int R = T <= 2 ? 8 : 4;   // R times T sums fit into the registers
    for (; row + R <= end; row += R) map_rows<Weight, R, T>(it, x, in.width, y, out.width, row);
    for (; row < end; row++) map_rows<Weight, 1, T>(it, x, in.width, y, out.width, row);
}

template <typename Weight>
static void map(const Instruction& it, const Buffer& in, const Buffer& out, int tokens, int begin, int end) {
    int first = 0;
    for (; first + 4 <= tokens; first += 4) map_tokens<Weight, 4>(it, in, out, first, begin, end);
    switch (tokens - first) {
        case 3: map_tokens<Weight, 3>(it, in, out, first, begin, end); break;
        case 2: map_tokens<Weight, 2>(it, in, out, first, begin, end); break;
        case 1: map_tokens<Weight, 1>(it, in, out, first, begin, end); break;
    }
}

// --- what is done with one token alone

static void norm(const Instruction& it, const float* x, float* y) {   // of one part; weight holds any offset already
    double mean = 0, square = 0;
    if (it.choice)   // a layer norm, not an RMS norm
        for (int i = 0; i < it.width; i++) mean += x[i];
    mean /= it.width;
    for (int i = 0; i < it.width; i++) square += (x[i] - mean) * (x[i] - mean);
    float inverse = 1 / std::sqrt(square / it.width + it.epsilon), middle = mean;
    const float* weight = (const float*)it.weight;
    for (int i = 0; i < it.width; i++) y[i] = (x[i] - middle) * inverse * weight[i] + (it.bias ? it.bias[i] : 0);
}

static void rotate(const Instruction& it, float* x, int64_t position) {   // of all heads from it.start on
    int half = it.width / 2;
    for (int i = 0; i < half; i++) {
        double angle = position * it.frequencies[i];
        float cosine = std::cos(angle), sine = std::sin(angle);
        for (int head = 0; head < it.count; head++) {
            float *first = x + it.start + head * it.width + i, *second = first + half;
            float a = *first, b = *second;
            *first = a * cosine - b * sine;
            *second = b * cosine + a * sine;
        }
    }
}

static void activate(int32_t choice, const float* x, const float* factor, float* y, int width) {
    switch (choice) {
        case SILU:
#pragma omp simd
            for (int i = 0; i < width; i++) y[i] = x[i] / (1 + std::exp(-x[i]));
            break;
        case GELU:
            for (int i = 0; i < width; i++) y[i] = 0.5f * x[i] * (1 + std::erf(x[i] * 0.70710678f));
            break;
        case GELU_TANH:
            for (int i = 0; i < width; i++)
                y[i] = 0.5f * x[i] * (1 + std::tanh(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
            break;
        case RELU2:
            for (int i = 0; i < width; i++) y[i] = x[i] > 0 ? x[i] * x[i] : 0;
    }
    if (factor)
        for (int i = 0; i < width; i++) y[i] *= factor[i];
}

template <typename Stored, int KEYS>
static void score(const Stored* keys, const float* query, int d_head, float scale, float* scores) {
    float out[KEYS][1];
    products<Stored, KEYS, 1>(keys, query, 0, d_head, out);
    for (int k = 0; k < KEYS; k++) scores[k] = out[k][0] * scale;
}

template <typename Stored, int CHUNKS>
static void mix(const Stored* values, const float* weights, int64_t count, int d_head, float total, float* out) {
    Lanes sums[CHUNKS] = {};
    for (int64_t k = 0; k < count; k++)
        for (int c = 0; c < CHUNKS; c++) sums[c] += weights[k] * load(values + k * d_head + c * WIDTH);
    for (int c = 0; c < CHUNKS; c++) {
        sums[c] /= total;
        std::memcpy(out + c * WIDTH, &sums[c], sizeof sums[c]);
    }
}

template <typename Stored>
static void attend(const Instruction& it, const float* query, float* out, const Cache& cache, int64_t row, int64_t place,
                   int head, std::vector<float>& scores) {
    int d_head = it.d_head;
    int64_t first = it.window ? std::max<int64_t>(0, place - it.window + 1) : 0, count = place + 1 - first;
    int64_t shelf = ((row * it.num_kv_heads + head / (it.num_heads / it.num_kv_heads)) * cache.capacity + first) * d_head;
    const Stored *keys = (const Stored*)cache.keys[it.layer] + shelf, *values = (const Stored*)cache.values[it.layer] + shelf;
    scores.resize(count);
    int64_t k = 0;
    for (; k + 8 <= count; k += 8) score<Stored, 8>(keys + k * d_head, query, d_head, it.scale, &scores[k]);
    for (; k < count; k++) score<Stored, 1>(keys + k * d_head, query, d_head, it.scale, &scores[k]);
    float largest = -INFINITY, total = 0;
    for (float score : scores) largest = std::max(largest, score);
    float* weights = scores.data();
#pragma omp simd
    for (k = 0; k < count; k++) weights[k] = std::exp(weights[k] - largest);
    for (float weight : scores) total += weight;
    int i = 0;
    for (; i + 4 * WIDTH <= d_head; i += 4 * WIDTH) mix<Stored, 4>(values + i, weights, count, d_head, total, out + i);
    for (; i + WIDTH <= d_head; i += WIDTH) mix<Stored, 1>(values + i, weights, count, d_head, total, out + i);
    for (; i < d_head; i++) {
        float sum = 0;
        for (k = 0; k < count; k++) sum += weights[k] * widen(values[k * d_head + i]);
        out[i] = sum / total;
    }
}

template <typename Stored>
static void remember(const Instruction& it, const float* row, const Cache& cache, int64_t cache_row, int64_t place) {
    int d_query = it.num_heads * it.d_head, d_key = it.num_kv_heads * it.d_head;
    for (int head = 0; head < it.num_kv_heads; head++) {
        int64_t to = ((cache_row * it.num_kv_heads + head) * cache.capacity + place) * it.d_head;
        for (int i = 0; i < it.d_head; i++) {
            store((Stored*)cache.keys[it.layer] + to + i, row[d_query + head * it.d_head + i]);
            store((Stored*)cache.values[it.layer] + to + i, row[d_query + d_key + head * it.d_head + i]);
        }
    }
}

// --- the team

struct Barrier {
    std::atomic<int> waiting{0}, round{0};
    void wait(int team) {
        int mine = round.load(std::memory_order_acquire);
        if (waiting.fetch_add(1, std::memory_order_acq_rel) + 1 == team) {
            waiting.store(0, std::memory_order_relaxed);
            round.store(mine + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round.load(std::memory_order_acquire) == mine; spins++)
            if (spins > 20000) std::this_thread::yield();   // about 0.1 ms: someone else has the core
    }
};

constexpr int ROWS_AT_ONCE = 32;

static int pieces(const Instruction& it, int tokens) {
    switch (it.kind) {
        case LINEAR: return (it.d_out + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
        case ATTEND: return tokens * it.num_heads;
        default: return tokens;
    }
}

static void carry_out(const Instruction& it, int piece, const Buffer* buffers, const Cache& cache, const Tokens& tokens,
                      std::vector<float>& scores) {
    const Buffer &in = buffers[it.source], &out = buffers[it.target];
    const float* x = in.data + piece * in.width;
    float* y = out.data + piece * out.width;
    switch (it.kind) {
        case LINEAR: {
            int begin = piece * ROWS_AT_ONCE, end = std::min(begin + ROWS_AT_ONCE, it.d_out);
            if (it.number_type == FLOAT32) map<float>(it, in, out, tokens.count, begin, end);
            else if (it.number_type == BFLOAT16) map<uint16_t>(it, in, out, tokens.count, begin, end);
            else map<int8_t>(it, in, out, tokens.count, begin, end);
            return;
        }
        case NORM:
            for (int part = 0; part < it.count; part++)
                norm(it, x + it.start + part * it.width, y + it.start + part * it.width);
            return;
        case ROTATE:
            if (it.frequencies) rotate(it, y, tokens.places[piece]);
            if (cache.number_type == FLOAT32) remember<float>(it, y, cache, tokens.rows[piece], tokens.places[piece]);
            else remember<uint16_t>(it, y, cache, tokens.rows[piece], tokens.places[piece]);
            return;
        case ATTEND: {
            int token = piece / it.num_heads, head = piece % it.num_heads;
            const float* query = in.data + token * in.width + head * it.d_head;
            float* result = out.data + token * out.width + head * it.d_head;
            if (cache.number_type == FLOAT32)
                attend<float>(it, query, result, cache, tokens.rows[token], tokens.places[token], head, scores);
            else attend<uint16_t>(it, query, result, cache, tokens.rows[token], tokens.places[token], head, scores);
            return;
        }
        case ACTIVATE: {
            const float* factor = it.other < 0 ? nullptr : buffers[it.other].data + piece * buffers[it.other].width;
            return activate(it.choice, x, factor, y, it.width);
        }
        case ADD:
            for (int i = 0; i < it.width; i++) y[i] += x[i];
            return;
    }
}

// Whose pieces are whose at first: each thread has a stretch of neighbours, so that what it fetches ahead is its own.
static int share_begin(int number, int share, int team) { return int(int64_t(number) * share / team); }

static void fetch_ahead(const Instruction& it, int share, int team) {
    static const int64_t bytes[] = {4, 2, 1};
    int64_t row = int64_t(share_begin(pieces(it, 0), share, team)) * ROWS_AT_ONCE;
    const char* begin = (const char*)it.weight + row * it.d_in * bytes[it.number_type];
    for (int line = 0; line < AHEAD; line += 64) __builtin_prefetch(begin + line);
}

extern "C" void pellucid_step(const Instruction* instructions, int32_t count, const Buffer* buffers, const Cache* cache,
                              const Tokens* tokens, int32_t threads) {
    std::vector<std::atomic<int>> taken(size_t(count) * threads);
    Barrier barrier;
#pragma omp parallel num_threads(threads)
    {
        int team = omp_get_num_threads(), me = omp_get_thread_num();
        std::vector<float> scores;
        for (int i = 0; i < count; i++) {
            const Instruction& it = instructions[i];
            int number = pieces(it, tokens->count);
            for (int n = 0; n < team; n++) {   // its own share, then what others have left
                int share = (me + n) % team, begin = share_begin(number, share, team);
                int end = share_begin(number, share + 1, team);
                std::atomic<int>& next = taken[size_t(i) * threads + share];
                for (int piece; (piece = begin + next.fetch_add(1, std::memory_order_relaxed)) < end;)
                    carry_out(it, piece, buffers, *cache, *tokens, scores);
            }
            int following = i + 1;
            while (following < count && instructions[following].kind != LINEAR) following++;
            if (following < count) fetch_ahead(instructions[following], me, team);
            barrier.wait(team);
        }
    }
}
