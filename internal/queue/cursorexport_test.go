package queue

// EncodeCursor and DecodeCursor are the cursors of a list.
var (
	EncodeCursor = encodeCursor
	DecodeCursor = decodeCursor
)
