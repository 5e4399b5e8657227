"""The folder that ``python -m fleet_mpi names install`` puts at the end of ``sys.path``; holds nothing else.

    paddle      becomes ``fleet_mpi.paddle`` when a script imports it, unless a real paddle is installed
"""
