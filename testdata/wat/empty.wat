;; Is a module, and nothing else.
(module)
