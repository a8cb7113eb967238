// Package migrate creates a configuration file of tutti from the configurations of a Maestro, an Arranger and a Song: .env files,
// Spring's application.yml and application.properties, Arranger's folders, or the environment of the process.
//
// A table for each product (maestro.go, arranger.go, song.go) lists its keys and tutti's. Package internal/config reads most of them
// from an environment, as at a start, so that the file and the environment mean the same; the others have a conversion in the table.
package migrate
