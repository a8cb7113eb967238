// Package idlist has the nouns of a job over a list of ids: a List is the part of it that belongs to one organization, an ID is one of
// them with its Outcome. It owns the bounds of a list and which outcomes are final.
//
// What may become of an id is an Outcome; Settled says whether it is final. It imports the standard library only.
package idlist
