package evaluate

import (
	"strconv"

	"tutti/internal/core"
	"tutti/internal/index"
)

// checkHits refuses what no answer can be given to.
func checkHits(h *index.HitsRequest) error {
	from := h.From
	if len(h.After) > 0 {
		from = 0
	}
	if from < 0 || h.Size < 0 || from > index.MaxWindow || h.Size > index.MaxWindow-from {
		return core.NewError(core.CodeInvalid, "documents are given up to number "+strconv.Itoa(index.MaxWindow)+
			" of an order; what lies behind is reached by the place of the last one")
	}
	return nil
}
