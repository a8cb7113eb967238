// Package deadletter stores dead letters in a stream and holds an index of them in memory.
package deadletter
