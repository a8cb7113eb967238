// Package sqon implements the filter language of the catalogues, SQON (CONTRACT section 4): parsing into a typed tree with the JSON
// pointer of every violation, validation against a catalogue's fields, normalization, printing, and a JSON Schema equivalent to the
// parser. It is independent of indexes and catalogues, and imports only internal/core.
//
// A filter passes through Parse, Check, Hoist and Normalize. Parse validates the language, Check the fields; Hoist moves clauses
// out of pivots that do not bind them, as engines require; Normalize makes the filter smaller.
//
// # What a pivot binds
//
// A pivot on P requires one element of P for which everything below it holds, so a document without elements never matches. A
// clause or a pivot is about the element of the longest path that contains its field and is bound by an enclosing pivot, whatever
// the order of the pivots; without one, it is about the document. So under a pivot on files, a clause on files.type or
// files.index.size is about the one bound file, and a clause on donor.sex is still about the document:
//
//	pivot files: and(files.type in [bam], donor.sex in [F])   some file is a bam, and the donor is F
//	pivot files: or(files.type in [bam], donor.sex in [F])    there is a file, and it is a bam or the donor is F
//
// A pivot on files within one on files.index binds a file of its own, since files is not below files.index; but a clause on
// files.index.size is still about the bound index.
//
// A pivot on a path that is already bound is about that same element. The pivots null and "." mean none: existing clients send
// both.
//
// # Accepted beyond the contract
//
// The content of a wildcard may have a string member entity, in which existing clients store notes; it has no effect, and is not
// printed. Everything else that is unknown is rejected, including the content members field and fields: no current server reads
// them.
//
// # Rejected beyond the contract
//
// So that every engine returns the same result, Check decides which values a type can be compared with: numbers, dates, booleans
// and ips do not support patterns in In, NotIn, SomeNotIn and All, and ips do not support networks. An alias without a target field
// supports no operator. Term and ParseDate define equality.
package sqon
