// Dense matrices of the solver: Eigen types with OpenBLAS below the products.
//
// Products run in float32 through BLAS, one thread each (heads are fitted in parallel, not rows);
// systems are solved in float64. A fit is byte-identical on processors of one kind.
#pragma once

#include <Eigen/Dense>

namespace kvasir::compaction {

using MatrixF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixD = Eigen::MatrixXd;
using VectorF = Eigen::VectorXf;
using VectorD = Eigen::VectorXd;

// M^T M, symmetric [columns, columns].
MatrixF Gram(const MatrixF& m);

// Solves (a + ridge I) x = b for symmetric positive semi-definite a. A jitter of 1e-6 of the mean
// diagonal, times ten until the factorisation succeeds, is added only when it fails without. b may
// have several columns.
MatrixD SolveRidge(MatrixD a, double ridge, const MatrixD& b);

}  // namespace kvasir::compaction
