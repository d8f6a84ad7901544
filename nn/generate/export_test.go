package generate

// HeldPages returns how many pages of a closed server's cache are not free.
func (s *Server) HeldPages() int {
	if s.pool == nil {
		return 0
	}
	held := 0
	for _, c := range s.pool {
		held += s.pages - c.FreePages()
	}
	return held
}

// Shared returns how many tokens of prompts were taken from others.
func (s *Server) Shared() int { return s.shared }
