"""Editors set up as docs/editors.md says, where they are installed: what they show is what the server knows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "editors.md"
RULES = "detect stolen = (lost ; payment) within 10min\ndetect twice =   stolen ; stolen\n"

NEOVIM = """
local function wait(test) assert(vim.wait(60000, test, 50)) end
local function asked(method)
  local at = vim.lsp.util.make_position_params(0, 'utf-16')
  for _, each in pairs(vim.lsp.buf_request_sync(0, method, at, 60000)) do return each.result end
end
vim.cmd('edit rules.ecco')
wait(function() return #vim.diagnostic.get(0) > 0 end)
print('diagnostic', vim.diagnostic.get(0)[1].message)
vim.api.nvim_win_set_cursor(0, {1, 17})
print('hover', asked('textDocument/hover').contents.value)
vim.api.nvim_win_set_cursor(0, {2, 18})
print('definition', asked('textDocument/definition')[1].range.start.character)
vim.lsp.buf.format({ timeout_ms = 60000 })
print('layout', vim.api.nvim_buf_get_lines(0, 1, 2, false)[1])
vim.cmd('qa!')
"""
EMACS = """
(setq eglot-sync-connect 60 eglot-connect-timeout 60)
(find-file "rules.ecco")
(call-interactively #'eglot)
(let ((end (+ 60 (float-time))))
  (while (and (not (flymake-diagnostics)) (< (float-time) end)) (flymake-start) (accept-process-output nil 0.1)))
(message "diagnostic %s" (flymake-diagnostic-text (car (flymake-diagnostics))))
(search-forward "(los")
(let ((found (jsonrpc-request (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams))))
  (message "hover %s" (plist-get (plist-get found :contents) :value)))
(goto-char (point-max)) (search-backward "stol")
(let ((found (xref-backend-definitions 'eglot "LSP identifier at point.")))
  (message "definition %s" (xref-location-marker (xref-item-location (car found)))))
(eglot-format-buffer)
(message "layout %s" (buffer-string))
(eglot-shutdown (eglot-current-server))
"""


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def shown(folder: Path, *command: str) -> str:
    (folder / "samples").mkdir()
    (folder / "samples" / "today.jsonl").write_text('{"type": "lost", "time": 1, "card": 7}\n')
    (folder / "rules.ecco").write_text(RULES)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def check(told: str) -> None:
    assert "what waits for a partner is kept for ever" in told, told
    assert "1 seen in the sample; attributes: `card`" in told, told
    assert "detect twice = stolen ; stolen" in told, told


def test_neovim(tmp_path: Path) -> None:
    told = (
        subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True).stdout if shutil.which("nvim") else ""
    )
    version = re.search(r"v(\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < (0, 11):
        pytest.skip("the language server is not tried in Neovim: there is none, or one before 0.11")
    (tmp_path / "init.lua").write_text(block("lua"))
    (tmp_path / "drive.lua").write_text(NEOVIM)
    (tmp_path / "coincide.json").write_text('{"events": ["samples/today.jsonl"]}')
    told = shown(tmp_path, "nvim", "--headless", "-u", "init.lua", "-l", "drive.lua")
    check(told)
    assert re.search(r"definition\s+7\b", told), told


def test_emacs(tmp_path: Path) -> None:
    start = ["emacs", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]
    if not shutil.which("emacs") or subprocess.run(start, capture_output=True, check=False).returncode:
        pytest.skip("the language server is not tried in Emacs: there is none, or one without eglot")
    (tmp_path / "init.el").write_text(block("elisp"))
    (tmp_path / "drive.el").write_text(EMACS)
    told = shown(tmp_path, *start, "-l", "./init.el", "-l", "./drive.el")
    check(told)
    assert "definition #<marker at 8 in rules.ecco>" in told, told
