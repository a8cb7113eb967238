package evaluate

import (
	"strconv"

	"tutti/internal/core"
	"tutti/internal/index"
)

// checkHits returns an error when a page of hits is beyond index.MaxWindow.
func checkHits(h *index.HitsRequest) error {
	from := h.From
	if len(h.After) > 0 {
		from = 0
	}
	if from < 0 || h.Size < 0 || from > index.MaxWindow || h.Size > index.MaxWindow-from {
		return core.NewError(core.CodeInvalid, "from and size must not be negative, and their sum must not exceed "+strconv.Itoa(index.MaxWindow)+
			"; to read further, continue after the sort values of the last document")
	}
	return nil
}
