// Package sectionfile reads and writes the file of a segment: a header, a directory in JSON, and sections, which are slices and bitmaps
// as they are in memory, each with a checksum. A reader uses the bytes of the file, which may be mapped. It owns the format, and what
// makes a file damaged; it does not know what a section means.
//
// What is stored visits its slices with a Visitor, always in the same order: WriteTo writes them as a stream, a File writes them one
// after another into an Output, of which it takes equal sections back, and a Reader sets them from the bytes of a file. An item of the
// directory is a Column, a Space or a Section.
//
// A new kind of slice is a method of Visitor. A change of the format needs a new version, and files of the one before are then
// rejected: their segments are rebuilt from the sources. It may import internal/core only.
package sectionfile
