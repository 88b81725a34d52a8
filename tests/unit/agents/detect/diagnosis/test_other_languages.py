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
AWAY = (
    "连接被对方重设",
    "連線被對方重設",
    "Die Verbindung wurde vom Kommunikationspartner zurückgesetzt",
    "Connexion ré-initialisée par le correspondant",
    "Conexión reinicializada por la máquina remota",
    "Conexão fechada pela outra ponta",
    "Connessione interrotta dal corrispondente",
    "Соединение разорвано другой стороной",
    "接続が相手からリセットされました",
    "상대편이 연결을 끊음",
    "没有到主机的路由",
    "找不到通往該主機的路由路徑",
    "Keine Route zum Zielrechner",
    "Aucun chemin d'accès pour atteindre l'hôte cible",
    "No existe ninguna ruta hasta el `host'",
    "Não há rota para o host",
    "Nessun instradamento per l'host",
    "Нет маршрута до узла",
    "ホストへの経路がありません",
    "호스트로 갈 루트가 없음",
    "网络不可达",
    "無法接觸網路",
    "Das Netzwerk ist nicht erreichbar",
    "Le réseau n'est pas accessible",
    "La red es inaccesible",
    "A rede está fora de alcance",
    "La rete non è raggiungibile",
    "ネットワークに届きません",
    "네트워크가 접근 불가능합니다",
    "域名解析暂时失败",
    "解析名稱時發生暫時性錯誤",
    "Temporärer Fehler bei der Namensauflösung",
    "Échec temporaire dans la résolution du nom",
    "Fallo temporal en la resolución del nombre",
    "Falha temporário na resolução de nome",
    "Errore temporaneo nella risoluzione del nome",
    "Временный сбой в разрешении имен",
    "名前解決に一時的に失敗しました",
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


@pytest.mark.parametrize("words", AWAY)
def test_a_network_that_is_away_is_known_and_a_person_decides(watch: Watch, words: str) -> None:
    done = watch(f"{STEPS}toyget: toys.example.org: {words}\n")
    assert (done.verdict.error_type, done.decision.action) == ("communication", "hold")
