// Package sqon owns the filter language of the catalogues, SQON (CONTRACT section 4): parsing with the JSON pointer of every
// fault, normalizing into a typed tree, validating against a catalogue's fields, printing, and the JSON Schema that says the
// same as the parser. It knows no index and no catalogue, and imports internal/core alone.
//
// The way of a filter is Parse, Check, Hoist, Normalize. Parse knows the language, Check the fields; Hoist leaves only pivots
// whose clauses are all below them, as an engine needs it; Normalize makes it small.
//
// # What a pivot binds
//
// A pivot on P asks for one element of P for which everything below it holds, so a document without elements never matches.
// A clause, or a pivot, is about the element of the longest path that a pivot around it has bound and that its field is
// below, in whatever order the pivots stand; with none, it is about the document. So under a pivot on files, a clause on
// files.type or files.index.size is about the one file that was bound, and a clause on donor.sex keeps its own meaning, at
// the document:
//
//	pivot files: and(files.type in [bam], donor.sex in [F])   some file is a bam, and the donor is F
//	pivot files: or(files.type in [bam], donor.sex in [F])    there is a file, and it is a bam or the donor is F
//
// A pivot on files inside of one on files.index asks for a file of its own, since files is not below files.index; but a clause
// on files.index.size stays about the index that was bound, inside of it too.
//
// A pivot on a path that is bound already is about that same element. The pivots null and "." stand for none: existing
// clients send both.
//
// # What is accepted beside the contract
//
// The content of a wildcard may have a string member entity, which existing clients keep their own notes in; it means nothing
// here, and is not printed. Everything else that is unknown is refused, a content member field or fields too: no server of
// today reads them.
//
// # What is refused beside the contract
//
// So that every engine gives the same answer, Check decides what values a type can be compared with: a number, a date, a
// boolean or an ip takes no pattern in In, NotIn, SomeNotIn and All, and an ip no network. An alias that leads to no field
// takes nothing. What equals what is told at Term and ParseDate.
package sqon
