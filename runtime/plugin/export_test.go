package plugin

// Value is what logs show of the change where nothing is redacted.
func (c *Change) Value() string { return c.value(Printable[string]) }
