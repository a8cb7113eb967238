// Package mappingfile reads the file in which a user describes the mapping of an index, and combines it with the mapping that tutti makes.
// It knows no engine.
package mappingfile
