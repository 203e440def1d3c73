// Package natsq carries tasks to workers on other machines through NATS
// JetStream: an embedded server, or a cluster that is there. It is built with
// the tag nats alone, because it doubles the size of the program.
//
// Tasks are messages of a work-queue stream, one subject a task, so that a task
// that is queued is not queued again. A worker acknowledges a task when its
// result is in the stream of results, says that it is at work while it is, and
// gives up a task that was delivered too often. The queue is never the record:
// who publishes takes results until every task has one, and publishes again
// what the queue lost.
package natsq
