// Package lyric is the client of a tabular repository that speaks Lyric's protocol (CONTRACT section 1): the
// organizations of one category, pages of an organization's records in the compound view as a stream, and one record.
// It must not import other upstreams, the index, the queue or the consumers.
package lyric
