# ruff: noqa: RUF001  # the letters are those of the shells
"""What shells and tools say of a command, a file or room that is missing, where they do not speak English."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 13))
PLACES = (
    "第 7 行：",
    "第 7 列：",
    "Zeile 7: ",
    "ligne 7 : ",
    "línea 7: ",
    "linha 7: ",
    "riga 7: ",
    "строка 7: ",
    "7 行: ",
    "행 7번: ",
)
MISSING = (
    "未找到命令",
    "指令找不到",
    "Kommando nicht gefunden.",
    "commande introuvable",
    "orden no encontrada",
    "comando não encontrado",
    "comando non trovato",
    "команда не найдена",
    "コマンドが見つかりません",
    "명령어를 찾을 수 없음",
    "没有那个文件或目录",
    "Datei oder Verzeichnis nicht gefunden",
    "Aucun fichier ou dossier de ce type",
    "No existe el archivo o el directorio",
    "Arquivo ou diretório inexistente",
    "File o directory non esistente",
    "Нет такого файла или каталога",
    "そのようなファイルやディレクトリはありません",
    "그런 파일이나 디렉터리가 없습니다",
)
FULL = (
    "设备上没有空间",
    "Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
    "Aucun espace disponible sur le périphérique",
    "No queda espacio en el dispositivo",
    "Não há espaço disponível no dispositivo",
    "Spazio esaurito sul device",
    "На устройстве не осталось свободного места",
    "デバイスに空き領域がありません",
    "장치에 남은 공간이 없음",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("words", MISSING)
def test_a_script_that_lacks_its_command_is_stopped(watch: Watch, place: str, words: str) -> None:
    done = watch(f"{STEPS}run.sh: {place}toyrun: {words}\n")
    assert (done.verdict.error_type, done.decision.action) == ("config", "stop")
    assert watch(f"run.sh: {place}toyrun: {words}\n{STEPS}").verdict.state == "healthy"


@pytest.mark.parametrize("words", FULL)
def test_a_full_disk_is_known(watch: Watch, words: str) -> None:
    done = watch(f"{STEPS}cp: toys/epoch-7.pt: {words}\n")
    assert (done.verdict.error_type, done.decision.action) == ("storage", "stop")
