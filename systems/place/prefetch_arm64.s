#include "go_asm.h"
#include "textflag.h"

// func prefetchTimes(words *uint32, n int, arrive *pair)
TEXT ·prefetchTimes(SB), NOSPLIT, $0-24
	MOVD  words+0(FP), R0
	MOVD  n+8(FP), R1
	MOVD  arrive+16(FP), R2

next:
	CBZ     R1, done
	MOVWU.P 4(R0), R3
	AND     $const_targetMask, R3, R3
	ADD     R3<<4, R2, R4
	PRFM    (R4), PLDL1KEEP          // never faults, whatever the word says
	SUB     $1, R1, R1
	B       next

done:
	RET
