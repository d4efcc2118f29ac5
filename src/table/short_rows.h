/* SPDX-License-Identifier: MIT */
/* Shared by ptx/short_tiles.cuh and prices. Alone, for most kernels have nothing to do with it. */
#ifndef HGEMM_SHORT_ROWS_H
#define HGEMM_SHORT_ROWS_H

#define HGEMM_SHORT_ROWS 16 /* of a tile by tables, at most, for which there is a loop */

#endif
