// Package standin has the servers that a benchmark needs beside tutti: a repository with generated records, and an engine that
// responds at once.
package standin
