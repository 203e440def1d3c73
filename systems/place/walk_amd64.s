#include "go_asm.h"
#include "textflag.h"

// The two loops of walk.go for x86-64 with AVX2. A time of run A and one of
// run B share a register. Nothing is read or written outside the arrays
// whatever the tables hold: padRows checks offsets and targets a block at a
// time and marks rows with lanes that are not there for the Go code, which
// meets them with its checks.

// Times are below 2^63 less 2^52: at most 2^30 rows of less than 2^32 ns,
// behind a leap of a loop to 2^62 at most. As bits of floating-point numbers
// they are positive and finite, and those are ordered as their bits are. So
// VMAXPD, one instruction, takes the larger of both runs; for integers of 64
// bits it would take two. It does no arithmetic.

// Rows of a block are counted in BX in steps of four, the size of most
// columns: with the factors that an address may have it is then the only
// index of 4-byte columns, times (16 bytes) and padded edges (32 bytes).

// Slots 0 to 3 of a row for run A and for run B, then slots 4 to 7.
DATA slots<>+0(SB)/8, $0x0000000100000000
DATA slots<>+8(SB)/8, $0x0000000300000002
DATA slots<>+16(SB)/8, $0x0000000100000000
DATA slots<>+24(SB)/8, $0x0000000300000002
DATA slots<>+32(SB)/8, $0x0000000500000004
DATA slots<>+40(SB)/8, $0x0000000700000006
DATA slots<>+48(SB)/8, $0x0000000500000004
DATA slots<>+56(SB)/8, $0x0000000700000006
GLOBL slots<>(SB), RODATA|NOPTR, $64

// Nothing for run A, all ones for run B; and the other way round.
DATA runs<>+0(SB)/8, $0
DATA runs<>+8(SB)/8, $0
DATA runs<>+16(SB)/8, $-1
DATA runs<>+24(SB)/8, $-1
DATA runs<>+32(SB)/8, $0
DATA runs<>+40(SB)/8, $0
GLOBL runs<>(SB), RODATA|NOPTR, $48

DATA low32<>+0(SB)/8, $0x00000000ffffffff
DATA low32<>+8(SB)/8, $0x00000000ffffffff
GLOBL low32<>(SB), RODATA|NOPTR, $16

DATA numbers<>+0(SB)/4, $const_stateMany
DATA numbers<>+4(SB)/4, $const_stateMore
DATA numbers<>+8(SB)/4, $const_stateGo
DATA numbers<>+12(SB)/4, $const_special
DATA numbers<>+16(SB)/4, $8
DATA numbers<>+20(SB)/4, $4
DATA numbers<>+24(SB)/4, $16
DATA numbers<>+28(SB)/4, $0xff
DATA numbers<>+32(SB)/4, $const_stateBanks
DATA numbers<>+36(SB)/4, $(127*16)
DATA numbers<>+40(SB)/4, $const_coreFactor
DATA numbers<>+44(SB)/4, $16
DATA numbers<>+48(SB)/4, $(const_bankFirst*16)
GLOBL numbers<>(SB), RODATA|NOPTR, $52

// Words of a row from (R9)(CX*4) on, once for run A and once for run B, into
// Y0; which of SLOTS are in use into Y1.
#define WORDS(SLOTS) \
	VBROADCASTI128 (R9)(CX*4), Y0; \
	VPBROADCASTD   block_degree(R15)(BX*1), Y1; \
	VPCMPGTD       SLOTS, Y1, Y1

// Targets times four into Y3 where bit 31 of Y2 says so, else the zero row's.
#define TARGETS \
	VPSLLD       $2, Y0, Y3; \
	VBLENDVPS    Y2, Y3, Y13, Y3

// The targets of a row without ordered edges: run B leaves out the classes
// with bit 31.
#define PLAIN(SLOTS) \
	WORDS(SLOTS); \
	VPAND        Y0, Y12, Y2; \
	VPANDN       Y1, Y2, Y2; \
	TARGETS

// The same with ordered edges, bits 31 and not 30, left out of run A too and
// marked in the state. Y11 is all ones for run A.
#define ORDERED(SLOTS) \
	WORDS(SLOTS); \
	VPADDD       Y0, Y0, Y2; \
	VPAND        Y11, Y2, Y2; \
	VPANDN       Y0, Y2, Y2; \
	VPAND        Y1, Y2, Y4; \
	VPANDN       Y1, Y2, Y2; \
	TARGETS; \
	VMOVMSKPS    X4, AX; \
	SHLL         $4, AX; \
	ORL          AX, block_state(R15)(BX*1)

// func padRows(b *block) int
TEXT ·padRows(SB), NOSPLIT, $0-16
	MOVQ         b+0(FP), R15
	MOVQ         block_off(R15), R8
	MOVQ         block_words(R15), R9
	MOVL         block_numWords(R15), R13
	MOVQ         block_rows(R15), R12
	CMPL         R13, $8
	JLT          padNone

	// Four words can be read of every row but the last few of the table.
padEnd:
	CMPQ         R12, $8
	JLT          padNone
	MOVL         -4(R8)(R12*4), AX
	ADDQ         $4, AX
	CMPQ         AX, R13
	JLS          padStates
	DECQ         R12
	JMP          padEnd

	// First what is told without looking at edges, eight rows at a time.
padStates:
	MOVL         (R8)(R12*4), AX
	CMPL         AX, R13
	JHI          padNone
	MOVQ         block_flags(R15), R10
	MOVQ         block_banks(R15), R11
	MOVQ         block_lane(R15), SI
	LEAQ         block_more(R15), DX
	VPXOR        X0, X0, X0
	VMOVDQU      Y0, (DX)
	MOVW         $0, 32(DX)
	VPBROADCASTD numbers<>+0(SB), Y15
	VPBROADCASTD numbers<>+4(SB), Y14
	VPBROADCASTD numbers<>+8(SB), Y13
	VPBROADCASTD numbers<>+12(SB), Y12
	VPBROADCASTD numbers<>+16(SB), Y11
	VPBROADCASTD numbers<>+20(SB), Y10
	VPBROADCASTD numbers<>+24(SB), Y9
	VPBROADCASTD block_lanes(R15), Y8
	VPCMPEQD     Y7, Y7, Y7          // stays all ones while offsets ascend
	VPXOR        X6, X6, X6          // all banks of the block
	XORL         BX, BX

padState:
	VMOVDQU      (R8)(BX*4), Y0
	VMOVDQU      4(R8)(BX*4), Y1
	VPMAXUD      Y0, Y1, Y2
	VPCMPEQD     Y1, Y2, Y2
	VPAND        Y2, Y7, Y7
	VPSUBD       Y0, Y1, Y0
	VPMINUD      Y9, Y0, Y0          // edges of the row, 16 for all that have more
	VMOVDQU      Y0, block_degree(R15)(BX*4)
	VPCMPGTD     Y10, Y0, Y1
	VMOVMSKPS    Y1, AX              // rows with more than four
	VPAND        Y14, Y1, Y1
	VPCMPGTD     Y11, Y0, Y0
	VPAND        Y15, Y0, Y0
	VPOR         Y1, Y0, Y0
	VPAND        (R10)(BX*4), Y12, Y1
	VPOR         Y1, Y0, Y0
	VPMOVZXWD    (R11)(BX*2), Y1
	VPSLLD       $16, Y1, Y1
	VPOR         Y1, Y6, Y6
	VPOR         Y1, Y0, Y0
	VPMOVZXWD    (SI)(BX*2), Y1
	VPSLLD       $4, Y1, Y2
	VMOVDQU      Y2, block_slot(R15)(BX*4)
	VPCMPGTD     Y1, Y8, Y1
	VPANDN       Y13, Y1, Y1         // lanes that are not there
	VPOR         Y1, Y0, Y0
	VMOVDQU      Y0, block_state(R15)(BX*4)
	MOVL         BX, CX
	ANDL         $7, CX
	SHLL         CX, AX
	MOVQ         BX, CX
	SHRQ         $3, CX
	ORW          AX, (DX)(CX*1)
	ADDQ         $8, BX
	LEAQ         8(BX), AX
	CMPQ         AX, R12
	JLE          padState
	CMPQ         BX, R12
	JGE          padOffsets
	LEAQ         -8(R12), BX         // the last eight, some of them again
	JMP          padState

padOffsets:
	VPMOVMSKB    Y7, AX
	CMPL         AX, $-1
	JNE          padNone
	XORL         AX, AX
	VPTEST       Y6, Y6
	SETNE        AX
	MOVL         AX, block_banked(R15)
	CMPQ         block_couple(R15), $0
	JNE          padBanks
	TESTL        AX, AX
	JEQ          padEdges

	// Where banks are used, the places of the bank to wait for and of the bank
	// that is used, of rows that have one of each at most; and the place for the
	// end of what writes a bank.
padBanks:
	MOVL         $1, block_banked(R15)
	MOVQ         block_latency(R15), R10
	MOVL         block_lanes(R15), AX
	SHLL         $4, AX
	VMOVD        AX, X7
	VPBROADCASTD X7, Y7              // where those places start, in bytes from free on
	LEAL         16(AX)(AX*1), AX
	VMOVD        AX, X6
	VPBROADCASTD X6, Y6              // that of rows that write none
	VPBROADCASTD numbers<>+28(SB), Y15
	VPBROADCASTD numbers<>+32(SB), Y14
	VPBROADCASTD numbers<>+36(SB), Y13
	VPBROADCASTD numbers<>+40(SB), Y12
	VPBROADCASTD numbers<>+44(SB), Y11
	VPBROADCASTD numbers<>+48(SB), Y10
	VPCMPEQD     Y9, Y9, Y9
	VPXOR        X8, X8, X8
	XORL         BX, BX

padBank:
	VPMOVZXWD    (R11)(BX*2), Y0
	VPSRLD       $8, Y0, Y1          // written
	VPOR         Y1, Y0, Y2
	VPAND        Y15, Y2, Y2         // used
	VPADDD       Y9, Y1, Y3
	VPAND        Y1, Y3, Y3
	VPADDD       Y9, Y2, Y4
	VPAND        Y2, Y4, Y4
	VPOR         Y3, Y4, Y4
	VPCMPEQD     Y8, Y4, Y4
	VPANDN       Y14, Y4, Y4         // more than one
	VPOR         block_state(R15)(BX*4), Y4, Y4
	VMOVDQU      Y4, block_state(R15)(BX*4)
	VPCMPEQD     (R10)(BX*4), Y8, Y5
	VPANDN       Y2, Y5, Y2          // what takes no time uses none
	VPMOVZXWD    (SI)(BX*2), Y3
	VPMULLD      Y12, Y3, Y3
	VPSRLD       $19, Y3, Y3         // the core
	VPSLLD       $7, Y3, Y3
	VPADDD       Y10, Y3, Y3         // where its banks are

	// The exponent of a power of two says which; zero is none.
	VPCMPEQD     Y8, Y1, Y4
	VPOR         Y4, Y5, Y5
	VPADDD       block_slot(R15)(BX*4), Y7, Y0
	VBLENDVPS    Y5, Y6, Y0, Y0
	VMOVDQU      Y0, block_keep(R15)(BX*4)
	VCVTDQ2PS    Y1, Y1
	VPSRLD       $19, Y1, Y1
	VPSUBD       Y13, Y1, Y1
	VPADDD       Y3, Y1, Y1
	VBLENDVPS    Y4, Y11, Y1, Y1
	VMOVDQU      Y1, block_wait(R15)(BX*4)
	VPCMPEQD     Y8, Y2, Y4
	VCVTDQ2PS    Y2, Y2
	VPSRLD       $19, Y2, Y2
	VPSUBD       Y13, Y2, Y2
	VPADDD       Y3, Y2, Y2
	VPANDN       Y2, Y4, Y2
	VMOVDQU      Y2, block_use(R15)(BX*4)
	ADDQ         $8, BX
	LEAQ         8(BX), AX
	CMPQ         AX, R12
	JLE          padBank
	CMPQ         BX, R12
	JGE          padEdges
	LEAQ         -8(R12), BX
	JMP          padBank

	// Then all words of the block, eight at a time: the largest target into
	// Y7, the smallest as a signed number, which an ordered edge is, into Y6;
	// and those targets that are further back than the caches reach into a
	// list, from which the memory is asked for their times.
padEdges:
	MOVQ         block_arrive(R15), DI
	MOVQ         block_out(R15), AX
	SUBQ         DI, AX
	SHRQ         $4, AX
	XORL         DX, DX
	SUBQ         $const_nearBack, AX
	CMOVQLT      DX, AX
	VMOVD        AX, X12
	VPBROADCASTD X12, Y12
	VPXOR        X7, X7, X7
	VPXOR        X6, X6, X6
	VPXOR        X5, X5, X5
	MOVL         (R8), SI
	MOVL         (R8)(R12*4), R14
	MOVQ         block_compress(R15), R10
	CMPQ         SI, R14
	JGE          padWordsDone

	CMPL         block_near(R15), $0
	JNE          padNear

padWords:
	XORL         DX, DX              // length of the list
	LEAQ         const_listWords(SI), R11
	CMPQ         R11, R14
	CMOVQGT      R14, R11            // the end of these words
	SUBQ         $8, R11
	CMPQ         SI, R11
	JGT          padWordsLast

padWord:
	VMOVDQU      (R9)(SI*4), Y0
	VPMINSD      Y0, Y6, Y6
	VPSLLD       $2, Y0, Y0
	VPSRLD       $2, Y0, Y1
	VPMAXSD      Y1, Y7, Y7
	VPCMPGTD     Y1, Y12, Y1
	VMOVMSKPS    Y1, AX
	VPMOVZXBD    (R10)(AX*8), Y1
	VPERMD       Y0, Y1, Y1
	VMOVDQU      Y1, block_list(R15)(DX*4)
	POPCNTL      AX, AX
	ADDQ         AX, DX
	ADDQ         $8, SI
	CMPQ         SI, R11
	JLE          padWord

	// The rest, fewer than eight, with some again; or, at the table's start, with
	// some beyond.
padWordsLast:
	LEAQ         8(R11), AX
	CMPQ         SI, AX
	JGE          padList
	MOVQ         R11, SI
	TESTQ        SI, SI
	JGE          padWord
	XORL         SI, SI
	XORL         R11, R11
	JMP          padWord

padList:
	DECQ         DX
	JLT          padListDone
	MOVL         block_list(R15)(DX*4), AX
	PREFETCHT0   (DI)(AX*4)
	JMP          padList

padListDone:
	CMPQ         SI, R14
	JLT          padWords
	JMP          padWordsDone

	// The same where all times lie in the caches.
padNear:
	SUBQ         $8, R14
	CMPQ         SI, R14
	JGT          padNearLast

padNearWord:
	VMOVDQU      (R9)(SI*4), Y0
	VPMINSD      Y0, Y6, Y6
	VPSLLD       $2, Y0, Y0
	VPMAXUD      Y0, Y5, Y5
	ADDQ         $8, SI
	CMPQ         SI, R14
	JLE          padNearWord

padNearLast:
	LEAQ         8(R14), AX
	CMPQ         SI, AX
	JGE          padNearDone
	MOVQ         R14, SI
	TESTQ        SI, SI
	JGE          padNearWord
	XORL         SI, SI
	XORL         R14, R14
	JMP          padNearWord

padNearDone:
	VPSRLD       $2, Y5, Y7

padWordsDone:
	VPBROADCASTD block_zero(R15), Y13
	VPSRLD       $2, Y13, Y0
	VPCMPGTD     Y7, Y0, Y0
	VPMOVMSKB    Y0, AX
	CMPL         AX, $-1
	JNE          padNone             // a target that is not there

	// Then the first four edges of every row.
	VMOVDQU      runs<>+0(SB), Y12
	VMOVDQU      runs<>+16(SB), Y11
	VMOVDQU      slots<>(SB), Y10
	MOVQ         R12, R13
	SHLQ         $2, R13
	XORL         BX, BX
	VPADDD       Y6, Y6, Y0
	VPANDN       Y6, Y0, Y0          // bit 31: bits 31 and not 30
	VMOVMSKPS    Y0, AX
	TESTL        AX, AX
	JNE          padOrdered

padRow:
	MOVL         (R8)(BX*1), CX
	PLAIN(Y10)
	VMOVDQU      Y3, block_pad(R15)(BX*8)
	ADDQ         $4, BX
	CMPQ         BX, R13
	JLT          padRow
	JMP          padMores

padOrdered:
	MOVL         (R8)(BX*1), CX
	ORDERED(Y10)
	VMOVDQU      Y3, block_pad(R15)(BX*8)
	ADDQ         $4, BX
	CMPQ         BX, R13
	JLT          padOrdered

	// Then the next four of those that have more.
padMores:
	VMOVDQU      slots<>+32(SB), Y10
	MOVL         block_numWords(R15), R13
	MOVQ         $-64, R11

padMoreWord:
	ADDQ         $64, R11
	CMPQ         R11, R12
	JGE          padDone
	MOVQ         R11, AX
	SHRQ         $3, AX
	MOVQ         block_more(R15)(AX*1), R14

padMore:
	TESTQ        R14, R14
	JEQ          padMoreWord
	TZCNTQ       R14, BX
	LEAQ         -1(R14), AX
	ANDQ         AX, R14
	ADDQ         R11, BX
	SHLQ         $2, BX
	MOVL         (R8)(BX*1), CX
	ADDQ         $4, CX
	LEAQ         4(CX), AX
	CMPQ         AX, R13
	JHI          padMoreGo           // beyond the end of the table
	ORDERED(Y10)
	VMOVDQU      Y3, block_pad2(R15)(BX*8)
	TESTL        $const_stateMany, block_state(R15)(BX*1)
	JEQ          padMore

	// What is beyond eight stays where it is.
	ADDQ         $4, CX
	MOVL         4(R8)(BX*1), SI     // where the row ends

padManyEdge:
	MOVL         (R9)(CX*4), AX
	SHRL         $30, AX
	CMPL         AX, $const_classOrdered
	JNE          padManyNext
	ORL          $const_stateOrdered, block_state(R15)(BX*1)

padManyNext:
	INCQ         CX
	CMPQ         CX, SI
	JB           padManyEdge
	JMP          padMore

padMoreGo:
	ORL          $const_stateGo, block_state(R15)(BX*1)
	JMP          padMore

padDone:
	VZEROUPPER
	MOVQ         R12, ret+8(FP)
	RET

padNone:
	VZEROUPPER
	MOVQ         $0, ret+8(FP)
	RET

// The pair (A of target a, B of target b) of slot k of PAD into dst.
#define GATHER(PAD, k, dst) \
	MOVL     (PAD+k*4)(R15)(BX*8), AX; \
	MOVL     (PAD+16+k*4)(R15)(BX*8), DX; \
	VMOVSD   (DI)(AX*4), dst; \
	VMOVHPS  8(DI)(DX*4), dst, dst

// When the row can start by four edges, into X0.
#define READY(PAD) \
	GATHER(PAD, 0, X0); \
	GATHER(PAD, 1, X1); \
	GATHER(PAD, 2, X2); \
	GATHER(PAD, 3, X3); \
	VMAXPD   X0, X1, X0; \
	VMAXPD   X2, X3, X2; \
	VMAXPD   X0, X2, X0

// start (X0) + issue into the lane at AX and X6, start + latency into arrive,
// the largest end into X15.
#define FINISH \
	VBROADCASTSS (R10)(BX*1), X5; \
	VPAND        X14, X5, X5; \
	VPADDQ       X0, X5, X6; \
	VMOVDQU      X6, (R13)(AX*1); \
	VBROADCASTSS (R11)(BX*1), X7; \
	VPAND        X14, X7, X7; \
	VPADDQ       X0, X7, X7; \
	VMOVDQU      X7, (R9)(BX*4); \
	VMAXPD       X15, X7, X15

// func walkRows(b *block, from, to int) int
TEXT ·walkRows(SB), NOSPLIT, $0-32
	MOVQ     b+0(FP), R15
	MOVQ     from+8(FP), BX
	MOVQ     to+16(FP), R8
	SHLQ     $2, BX
	SHLQ     $2, R8
	MOVQ     block_arrive(R15), DI
	MOVQ     block_issue(R15), R10
	MOVQ     block_latency(R15), R11
	MOVQ     block_free(R15), R13
	MOVQ     block_out(R15), R9
	VMOVDQU  low32<>(SB), X14
	VMOVDQU  block_last(R15), X15
	MOVQ     block_bank(R15), R12
	CMPQ     BX, R8
	JGE      walkDone
	CMPQ     block_couple(R15), $0
	JNE      walkCoupledRow
	CMPL     block_banked(R15), $0
	JNE      walkBankRow

walkRow:
	CMPL     block_state(R15)(BX*1), $0
	JNE      walkSome
	READY(block_pad)

walkPlain:
	MOVL     block_slot(R15)(BX*1), AX
	VMAXPD   (R13)(AX*1), X0, X0
	FINISH
	ADDQ     $4, BX
	CMPQ     BX, R8
	JLT      walkRow

walkDone:
	VMOVDQU  X15, block_last(R15)
	SHRQ     $2, BX
	MOVQ     BX, ret+24(FP)
	RET

	// The same in blocks that use PSUM banks, rows with no bank and with one
	// alike: those with none wait for a time that stays zero and use a place
	// that nobody waits for.
walkBankRow:
	MOVWLZX  block_state(R15)(BX*1), AX
	TESTL    AX, AX
	JNE      walkSome
	READY(block_pad)

walkBank:
	MOVL     block_slot(R15)(BX*1), AX
	MOVL     block_wait(R15)(BX*1), DX
	VMAXPD   (R13)(AX*1), X0, X0
	VMAXPD   (R12)(DX*1), X0, X0
	FINISH
	MOVL     block_use(R15)(BX*1), DX
	VMOVDQU  X6, (R12)(DX*1)
	ADDQ     $4, BX
	CMPQ     BX, R8
	JLT      walkBankRow
	JMP      walkDone

	// The same on machines whose engines wait for one another: each lane for at
	// most two times of other lanes, those it has none of being zero.
walkCoupledRow:
	MOVWLZX  block_state(R15)(BX*1), AX
	TESTL    AX, AX
	JNE      walkSome
	READY(block_pad)

walkCoupled:
	MOVL     block_slot(R15)(BX*1), AX
	MOVL     block_wait(R15)(BX*1), DX
	VMAXPD   (R13)(AX*1), X0, X0
	VMAXPD   (R12)(DX*1), X0, X0
	MOVQ     block_couple(R15), CX
	MOVL     AX, DX
	SHRL     $1, DX                  // eight bytes a lane
	MOVL     (CX)(DX*1), SI
	MOVL     4(CX)(DX*1), DX
	VMAXPD   (R13)(SI*1), X0, X0
	VMAXPD   (R13)(DX*1), X0, X0
	FINISH
	MOVL     block_use(R15)(BX*1), DX
	VMOVDQU  X6, (R12)(DX*1)
	MOVL     block_keep(R15)(BX*1), DX
	VMOVDQU  X7, (R13)(DX*1)
	ADDQ     $4, BX
	CMPQ     BX, R8
	JLT      walkCoupledRow
	JMP      walkDone

	// A row with more than four edges, with ordered edges, with PSUM banks, or
	// with several of these, or one that is the Go code's.
walkSome:
	MOVL     block_state(R15)(BX*1), R14
	TESTL    $(const_special|const_stateGo), R14
	JNE      walkDone
	READY(block_pad)
	TESTL    $const_stateMore, R14
	JEQ      walkOrdered
	VMOVAPD  X0, X4
	READY(block_pad2)
	VMAXPD   X0, X4, X0
	TESTL    $const_stateMany, R14
	JEQ      walkOrdered
	MOVQ     block_off(R15), AX
	MOVL     4(AX)(BX*1), CX
	MOVL     (AX)(BX*1), AX
	ADDQ     $8, AX                  // the ninth word

walkEdge:
	MOVQ     block_words(R15), SI
	MOVL     (SI)(AX*4), SI
	MOVL     SI, DX
	SHLL     $2, SI
	VMOVSD   (DI)(SI*4), X1          // run A, and nothing for run B
	SHRL     $30, DX
	CMPL     DX, $const_classOrdered
	JEQ      walkEdgeNext
	JHI      walkEdgeMax
	VMOVUPD  (DI)(SI*4), X1

walkEdgeMax:
	VMAXPD   X0, X1, X0

walkEdgeNext:
	INCQ     AX
	CMPQ     AX, CX
	JB       walkEdge

	// An ordered edge lets the row start when its producer has left its lane:
	// latency less issue interval before its end. Triggers and collectives are
	// the Go code's.
walkOrdered:
	TESTL    $const_stateOrdered, R14
	JEQ      walkBanks
	MOVQ     block_off(R15), AX
	MOVL     4(AX)(BX*1), CX
	MOVL     (AX)(BX*1), AX

walkOrderedEdge:
	MOVQ     block_words(R15), SI
	MOVL     (SI)(AX*4), SI
	MOVL     SI, DX
	SHRL     $30, DX
	CMPL     DX, $const_classOrdered
	JNE      walkOrderedNext
	ANDL     $const_targetMask, SI
	MOVQ     block_allFlags(R15), DX
	TESTL    $const_special, (DX)(SI*4)
	JNE      walkDone
	MOVQ     block_allLatency(R15), DX
	MOVL     (DX)(SI*4), DX
	MOVQ     block_allIssue(R15), R14
	SUBL     (R14)(SI*4), DX
	MOVL     block_state(R15)(BX*1), R14
	SHLQ     $4, SI
	VMOVQ    DX, X1
	VPUNPCKLQDQ X1, X1, X1
	VMOVDQU  (DI)(SI*1), X2
	VPSUBQ   X1, X2, X2
	VMAXPD   X0, X2, X0

walkOrderedNext:
	INCQ     AX
	CMPQ     AX, CX
	JB       walkOrderedEdge

walkBanks:
	CMPL     block_banked(R15), $0
	JEQ      walkPlain
	CMPQ     block_couple(R15), $0
	JNE      walkCouples
	TESTL    $const_stateBanks, R14
	JEQ      walkBank

	// Several banks.
	SHRL     $16, R14
	MOVL     block_slot(R15)(BX*1), AX
	VMAXPD   (R13)(AX*1), X0, X0
	MOVQ     block_bankOf(R15), CX
	MOVQ     AX, DX
	SHRQ     $2, DX
	MOVL     (CX)(DX*1), CX
	ADDQ     R12, CX                  // the banks of the lane's core
	MOVL     R14, DX
	SHRL     $8, DX                  // those written
	JEQ      walkStart

walkWait:
	TZCNTL   DX, SI
	SHLQ     $4, SI
	VMAXPD   (CX)(SI*1), X0, X0
	LEAL     -1(DX), SI
	ANDL     SI, DX
	JNE      walkWait

walkStart:
	FINISH
	CMPL     (R11)(BX*1), $0
	JEQ      walkUsed
	MOVL     R14, DX
	SHRL     $8, DX
	ORL      R14, DX
	ANDL     $0xff, DX               // those read or written

walkUse:
	TZCNTL   DX, SI
	SHLQ     $4, SI
	VMOVDQU  X6, (CX)(SI*1)
	LEAL     -1(DX), SI
	ANDL     SI, DX
	JNE      walkUse

walkUsed:
	ADDQ     $4, BX
	CMPQ     BX, R8
	JLT      walkBankRow
	JMP      walkDone

	// Several banks on coupled engines are the Go code's.
walkCouples:
	TESTL    $const_stateBanks, R14
	JEQ      walkCoupled
	JMP      walkDone
