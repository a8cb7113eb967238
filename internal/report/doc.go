// Package report holds what an operator asks or is told: why is the state of one record between its repository and the index, whose answer
// is recordtrace, overview that of each repository, and alert sends messages about jobs, pauses and dead letters. They read through ports
// and change nothing; a new question of an operator about something that is stored already goes here.
package report
