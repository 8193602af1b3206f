import pytest

from xftp.client.session import connect, open_session
from xftp.errors import ArgumentError, ConnectError, LoginError

from .scripted import HOST, scripted, session_with


async def test_without_a_user_the_login_is_anonymous() -> None:
    async with scripted() as server:
        async with connect(f"ftp://{HOST}:{server.port}/", connections=1) as session:
            assert session.is_logged_in
        assert server.heard == ["USER anonymous", "PASS anonymous@", "FEAT", "QUIT"]
        assert session.is_closed


async def test_user_and_password_come_from_the_url_or_before_it() -> None:
    async with scripted() as server:
        url = f"ftp://u:p%20q@{HOST}:{server.port}/"
        async with connect(url, connections=1):
            pass
        async with connect(url, user="v", password="r", connections=1):
            pass
    assert server.heard[:2] == ["USER u", "PASS p q"]
    assert server.heard[4:6] == ["USER v", "PASS r"]


async def test_a_server_may_need_no_password() -> None:
    async with scripted({"USER": "230 just come in"}) as server, session_with(server) as session:
        assert session.is_logged_in
        assert "PASS" not in server.verbs()


@pytest.mark.parametrize(
    "script",
    [
        {"USER": "530 no"},
        {"PASS": "530 no"},
        {"PASS": "430 no"},
        {"PASS": "332 account please"},
        {"USER": "332 account please"},
    ],
)
async def test_a_refused_login_is_a_login_error(script: dict[str, str]) -> None:
    async with scripted(dict(script)) as server:
        with pytest.raises(LoginError) as caught:
            async with session_with(server):
                pass
    assert caught.value.exit_code == 3


async def test_too_many_sessions_is_a_connect_error() -> None:
    async with scripted({"PASS": "421 too many"}) as server:
        with pytest.raises(ConnectError, match="too many"):
            async with session_with(server):
                pass


async def test_a_second_login_is_possible_after_a_refused_one() -> None:
    async with scripted({"USER": "530 no"}) as server:
        session = await open_session(f"ftp://{HOST}:{server.port}/", login=False)
        with pytest.raises(LoginError):
            await session.login("u", "p")
        server.script["USER"] = "331 password"
        await session.login("u", "p")
        assert session.is_logged_in
        await session.quit()


async def test_a_line_end_in_a_name_is_refused() -> None:
    async with scripted() as server:
        with pytest.raises(ArgumentError):
            async with connect(f"ftp://{HOST}:{server.port}/", user="u\r\nDELE x"):
                pass
        assert server.heard == []


async def test_utf8_is_switched_on_where_it_is_offered() -> None:
    script = {"FEAT": "211-\r\n UTF8\r\n MDTM\r\n211 end", "OPTS": "200 on"}
    async with scripted(script) as server, session_with(server) as session:
        assert "OPTS UTF8 ON" in server.heard
        assert await session.features() == {"UTF8": "", "MDTM": ""}


async def test_a_server_that_does_not_answer_quit_is_left() -> None:
    async def silence(*_: object) -> None:
        talk = _[0]
        talk.hang_up()  # type: ignore[attr-defined]

    async with scripted({"QUIT": silence}) as server:
        async with connect(f"ftp://{HOST}:{server.port}/", connections=1) as session:
            pass
        assert session.is_closed
