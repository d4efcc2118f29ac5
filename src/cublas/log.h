/* SPDX-License-Identifier: MIT */
/* The log, the summary and the record of shapes; all three know distinct products, each noted when it first comes. */
#ifndef HGEMM_CUBLAS_LOG_H
#define HGEMM_CUBLAS_LOG_H

#include "product.h"

int log_is_on(void);
void log_product(const product_t *product);

#endif
