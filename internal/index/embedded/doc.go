// Package embedded implements the index that runs inside the process, with Elasticsearch's semantics of writes, versions and mappings. It may
// import internal/core, internal/index, internal/index/document, internal/index/mapping and the packages below it, and never imports the
// other engine.
//
// What stores is below: indexfile has the documents of many aliases in one file, segmentset their segments, segment the columns of one, and
// evaluate searches them. This package is what the port asks for: it checks documents against the mapping and lets that grow (writer), reads
// documents within a bound of memory (reader, documents), evaluates searches (searcher), and creates, compares and moves aliases (admin). What a
// mapping file may say is in definition.go; another method of the port goes to the one of the four that it concerns.
//
// # Searching
//
// Searches read segments, which are in memory or mapped from files. Each transaction builds one segment of the documents that it stores, marks those that it
// rewrites or removes as deleted in older segments, and publishes both with one pointer; published data is immutable. Adjacent
// segments are merged in the background, and large ones are stored in files of the folder segments.
package embedded
