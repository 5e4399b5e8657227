// cuBLAS: the functions that cupy's products call, on float16, bfloat16, float32 and float64. Matrices are stored by
// columns. Sums are taken in double, which no GPU does: results are to be compared with a tolerance, as on hardware.
// cublas_v2.h comes with a library of 400 MB: handles, codes and enumerations are declared here.
#include "emulation.h"

#include <library_types.h>

#include <cmath>
#include <vector>

namespace emulation {

const int SUCCESS = 0;
enum PointerMode { HOST = 0, DEVICE = 1 };
enum ComputeType { COMPUTE_16F = 64, COMPUTE_16F_PEDANTIC = 65, COMPUTE_64F = 70, COMPUTE_64F_PEDANTIC = 71 };

struct Handle {
    void *stream;
    int math_mode, pointer_mode;
};

static size_t size_of(int type)
{
    switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F: return 4;
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    default: die("cuBLAS: numbers of type %d are not emulated", type);
    }
}

static double load(const void *from, int type, long i)
{
    switch (type) {
    case CUDA_R_64F: return ((const double *)from)[i];
    case CUDA_R_32F: return ((const float *)from)[i];
    case CUDA_R_16F: return from_half(((const unsigned short *)from)[i]);
    default: return from_bfloat(((const unsigned short *)from)[i]);
    }
}

static void store(void *to, int type, long i, double value)
{
    switch (type) {
    case CUDA_R_64F: ((double *)to)[i] = value; break;
    case CUDA_R_32F: ((float *)to)[i] = (float)value; break;
    case CUDA_R_16F: ((unsigned short *)to)[i] = to_half((float)value); break;
    default: ((unsigned short *)to)[i] = to_bfloat((float)value);
    }
}

struct Matrix {
    void *data;
    int type, leading;   // elements from column to column
    long long stride;    // elements from matrix to matrix of a batch

    Matrix at(int number) const
    {
        return {(char *)data + number * stride * (long long)size_of(type), type, leading, 0};
    }
    double get(int row, int column) const { return load(data, type, row + (long)column * leading); }
    void set(int row, int column, double value) const { store(data, type, row + (long)column * leading, value); }
};

// One of the two factors of a sum, as the pointer mode and the type of computing say where and what it is.
struct Factor {
    const void *where;
    int type;
    bool on_host;
    double value;

    Factor(const Handle *handle, const void *given, int kind)
        : where(given), type(kind), on_host(handle->pointer_mode == HOST), value(on_host ? load(given, kind, 0) : 0)
    {
    }
    double get() const { return on_host ? value : load(where, type, 0); }
};

static int factor_type(int compute)
{
    if (compute == COMPUTE_64F || compute == COMPUTE_64F_PEDANTIC)
        return CUDA_R_64F;
    return compute == COMPUTE_16F || compute == COMPUTE_16F_PEDANTIC ? CUDA_R_16F : CUDA_R_32F;
}

static void enqueue_blas(const Handle *handle, Work work)
{
    count(BLAS_CALLS);
    log("cuBLAS call");
    if (!settings().skips_kernels)
        enqueue(handle->stream, work);
}

struct Product {
    bool left_is_transposed, right_is_transposed;
    int rows, columns, inner;
};

// result = alpha * left @ right + beta * result. Rows are innermost: so g++ makes vector instructions of it.
static void multiply(Product p, double alpha, Matrix left, Matrix right, double beta, Matrix result)
{
    std::vector<double> packed((size_t)p.rows * p.inner), sums(p.rows);
    for (int k = 0; k < p.inner; k++)
        for (int i = 0; i < p.rows; i++)
            packed[(size_t)k * p.rows + i] = p.left_is_transposed ? left.get(k, i) : left.get(i, k);
    for (int j = 0; j < p.columns; j++) {
        sums.assign(p.rows, 0.0);
        for (int k = 0; k < p.inner; k++) {
            const double factor = p.right_is_transposed ? right.get(j, k) : right.get(k, j);
            const double *column = &packed[(size_t)k * p.rows];
            for (int i = 0; i < p.rows; i++)
                sums[i] += column[i] * factor;
        }
        // A beta of zero overwrites: what was there may be no number.
        for (int i = 0; i < p.rows; i++)
            result.set(i, j, alpha * sums[i] + (beta == 0 ? 0 : beta * result.get(i, j)));
    }
}

static int gemm(const Handle *handle, Product p, Factor alpha, Matrix left, Matrix right, Factor beta, Matrix result,
                int batch)
{
    for (const Matrix *each : {&left, &right, &result})
        if (batch && p.rows && p.columns && !usable_on(current_device(), each->data))
            die("cuBLAS: a matrix is not in the memory of device %d", current_device());
    enqueue_blas(handle, [=] {
        for (int number = 0; number < batch; number++)
            multiply(p, alpha.get(), left.at(number), right.at(number), beta.get(), result.at(number));
    });
    return SUCCESS;
}

// Matrices of a batch that lie anywhere: the lists of their addresses are on the device.
static int gemm_of_lists(const Handle *handle, Product p, Factor alpha, void *const *left, int left_leading,
                         void *const *right, int right_leading, Factor beta, void *const *result, int result_leading,
                         int type, int batch)
{
    enqueue_blas(handle, [=] {
        for (int number = 0; number < batch; number++)
            multiply(p, alpha.get(), {left[number], type, left_leading, 0}, {right[number], type, right_leading, 0},
                     beta.get(), {result[number], type, result_leading, 0});
    });
    return SUCCESS;
}

struct Vector {
    const void *data;
    int type, step;
    double get(int i) const { return load(data, type, (long)i * step); }
};

static int gemv(const Handle *handle, bool transposed, int rows, int columns, Factor alpha, Matrix matrix, Vector x,
                Factor beta, Vector y)
{
    enqueue_blas(handle, [=] {
        const int size = transposed ? columns : rows, inner = transposed ? rows : columns;
        for (int i = 0; i < size; i++) {
            double sum = 0;
            for (int k = 0; k < inner; k++)
                sum += (transposed ? matrix.get(k, i) : matrix.get(i, k)) * x.get(k);
            const double old = beta.get() == 0 ? 0 : beta.get() * y.get(i);
            store((void *)y.data, y.type, (long)i * y.step, alpha.get() * sum + old);
        }
    });
    return SUCCESS;
}

// Sum of products, or its root. A result on the host makes cuBLAS wait for it.
static int dot(const Handle *handle, int size, Vector x, Vector y, bool root, void *result)
{
    enqueue_blas(handle, [=] {
        double sum = 0;
        for (int i = 0; i < size; i++)
            sum += x.get(i) * y.get(i);
        store(result, x.type, 0, root ? std::sqrt(sum) : sum);
    });
    if (handle->pointer_mode == HOST) {
        count(WAITS);
        wait_for_stream(handle->stream);
    }
    return SUCCESS;
}

}   // namespace emulation

using namespace emulation;

EXPORT int cublasCreate_v2(Handle **made)
{
    *made = new Handle{nullptr, 0, HOST};
    return SUCCESS;
}

EXPORT int cublasDestroy_v2(Handle *handle)
{
    delete handle;
    return SUCCESS;
}

EXPORT int cublasGetVersion_v2(Handle *, int *version) { *version = 130000; return SUCCESS; }
EXPORT int cublasSetStream_v2(Handle *handle, void *stream) { handle->stream = stream; return SUCCESS; }
EXPORT int cublasGetStream_v2(Handle *handle, void **stream) { *stream = handle->stream; return SUCCESS; }
EXPORT int cublasSetMathMode(Handle *handle, int mode) { handle->math_mode = mode; return SUCCESS; }
EXPORT int cublasGetMathMode(Handle *handle, int *mode) { *mode = handle->math_mode; return SUCCESS; }
EXPORT int cublasSetPointerMode_v2(Handle *handle, int mode) { handle->pointer_mode = mode; return SUCCESS; }
EXPORT int cublasGetPointerMode_v2(Handle *handle, int *mode) { *mode = handle->pointer_mode; return SUCCESS; }

EXPORT int cublasGemmStridedBatchedEx(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                                      int a_type, int lda, long long a_stride, const void *b, int b_type, int ldb,
                                      long long b_stride, const void *beta, void *c, int c_type, int ldc,
                                      long long c_stride, int batch, int compute, int)
{
    const int type = factor_type(compute);
    return gemm(h, {ta != 0, tb != 0, m, n, k}, {h, alpha, type}, {(void *)a, a_type, lda, a_stride},
                {(void *)b, b_type, ldb, b_stride}, {h, beta, type}, {c, c_type, ldc, c_stride}, batch);
}

EXPORT int cublasGemmEx(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type,
                        int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                        int compute, int algorithm)
{
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type,
                                      ldc, 0, 1, compute, algorithm);
}

EXPORT int cublasSgemmEx(Handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int a_type,
                         int lda, const void *b, int b_type, int ldb, const float *beta, void *c, int c_type, int ldc)
{
    return gemm(h, {ta != 0, tb != 0, m, n, k}, {h, alpha, CUDA_R_32F}, {(void *)a, a_type, lda, 0},
                {(void *)b, b_type, ldb, 0}, {h, beta, CUDA_R_32F}, {c, c_type, ldc, 0}, 1);
}

// The functions that exist once for float and once for double.
#define OF_TYPE(S, real, TYPE)                                                                                         \
    EXPORT int cublas##S##gemm_v2(Handle *h, int ta, int tb, int m, int n, int k, const real *alpha, const real *a,    \
                                  int lda, const real *b, int ldb, const real *beta, real *c, int ldc)                 \
    {                                                                                                                  \
        return gemm(h, {ta != 0, tb != 0, m, n, k}, {h, alpha, TYPE}, {(void *)a, TYPE, lda, 0},                       \
                    {(void *)b, TYPE, ldb, 0}, {h, beta, TYPE}, {c, TYPE, ldc, 0}, 1);                                 \
    }                                                                                                                  \
    EXPORT int cublas##S##gemmStridedBatched(Handle *h, int ta, int tb, int m, int n, int k, const real *alpha,        \
                                             const real *a, int lda, long long sa, const real *b, int ldb,             \
                                             long long sb, const real *beta, real *c, int ldc, long long sc, int many) \
    {                                                                                                                  \
        return gemm(h, {ta != 0, tb != 0, m, n, k}, {h, alpha, TYPE}, {(void *)a, TYPE, lda, sa},                      \
                    {(void *)b, TYPE, ldb, sb}, {h, beta, TYPE}, {c, TYPE, ldc, sc}, many);                            \
    }                                                                                                                  \
    EXPORT int cublas##S##gemmBatched(Handle *h, int ta, int tb, int m, int n, int k, const real *alpha,               \
                                      void *const *a, int lda, void *const *b, int ldb, const real *beta,              \
                                      void *const *c, int ldc, int many)                                               \
    {                                                                                                                  \
        return gemm_of_lists(h, {ta != 0, tb != 0, m, n, k}, {h, alpha, TYPE}, a, lda, b, ldb, {h, beta, TYPE}, c,     \
                             ldc, TYPE, many);                                                                         \
    }                                                                                                                  \
    EXPORT int cublas##S##gemv_v2(Handle *h, int t, int m, int n, const real *alpha, const real *a, int lda,           \
                                  const real *x, int x_step, const real *beta, real *y, int y_step)                    \
    {                                                                                                                  \
        return gemv(h, t != 0, m, n, {h, alpha, TYPE}, {(void *)a, TYPE, lda, 0}, {x, TYPE, x_step}, {h, beta, TYPE},  \
                    {y, TYPE, y_step});                                                                                \
    }                                                                                                                  \
    EXPORT int cublas##S##dot_v2(Handle *h, int n, const real *x, int x_step, const real *y, int y_step, real *result) \
    {                                                                                                                  \
        return dot(h, n, {x, TYPE, x_step}, {y, TYPE, y_step}, false, result);                                         \
    }                                                                                                                  \
    EXPORT int cublas##S##nrm2_v2(Handle *h, int n, const real *x, int x_step, real *result)                           \
    {                                                                                                                  \
        return dot(h, n, {x, TYPE, x_step}, {x, TYPE, x_step}, true, result);                                          \
    }
OF_TYPE(S, float, CUDA_R_32F)
OF_TYPE(D, double, CUDA_R_64F)
