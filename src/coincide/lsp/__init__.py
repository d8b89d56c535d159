"""`coincide lsp`: the language server. What it answers is found in `coincide.editing`; here it is put in the protocol's words."""
